// Does it fit? Every verb gives the same answer, also where the peak alone would fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::vector<Json> kPlans = {
    {{"tp", 4}, {"pp", 4}, {"global_batch", 32}},
    {{"tp", 2}, {"pp", 2}, {"global_batch", 64}, {"zero", 1}},
    {{"tp", 1}, {"pp", 8}, {"vpp", 2}, {"schedule", "interleaved-1f1b"}, {"global_batch", 32}},
    {{"tp", 8}, {"pp", 1}, {"zero", 3}, {"global_batch", 16}}};

Json scenario_of(Json plan) {
  plan["seq"] = 4096;
  return {{"schema", "rehearse.scenario/1"}, {"model", "llama3-8b"},   {"cluster", "dgx-h100"}, {"gpus", 16},
          {"engine", "reference"},           {"plan", std::move(plan)}};
}

std::string file_of(Json scenario, double memory_bytes) {
  if (memory_bytes > 0)
    scenario["cluster_changes"]["gpu"]["memory"] = std::to_string(std::llround(memory_bytes)) + "B";
  return temporary_file("fits.json", scenario.dump());
}

std::string new_store() {
  const std::string path = temporary_file("fits.db", "");
  std::filesystem::remove(path);
  return " --store " + path;
}

// The page's verdict for the current plan.
bool fits_in_what_if(const std::string& file) {
  const std::string path = temporary_file("fits.html", "");
  run_program("simulate " + file + " --html " + path);
  std::ifstream in(path);
  const std::string page(std::istreambuf_iterator<char>(in), {});
  const std::string from = "id=\"data\">";
  const std::size_t begin = page.find(from) + from.size();
  const Json data = Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  const Json& knob = data["what_if"][0];
  for (const Json& row : knob["values"])
    if (row["value"] == knob["current"]) return row["fits"];
  ADD_FAILURE() << "the curve lacks its own plan";
  return false;
}

// The verb searches schedules, recompute and ZeRO too, unless they are held.
int plan_exit_code(const std::string& file, const Json& plan) {
  const auto value = [&](const char* key, const Json& none) {
    const Json found = plan.value(key, none);
    return found.is_string() ? found.get<std::string>() : found.dump();
  };
  std::string flags = " --headroom 0 --cp 1 --ep 1 --mbs 1 --recompute none";
  for (const char* key : {"tp", "pp"}) flags += std::string(" --") + key + " " + value(key, 1);
  flags += " --vpp " + value("vpp", 1) + " --zero " + value("zero", 0) + " --schedule " +
           value("schedule", "1f1b");
  return run_program("plan " + file + flags + " --json").exit_code;
}

TEST(Fits, IsTheSameForEveryVerbAroundTheEdge) {
  for (const Json& plan : kPlans) {
    const Json roomy =
        Json::parse(run_program("simulate " + file_of(scenario_of(plan), 0) + " --json").out)["memory"];
    const double needed = roomy["needed_bytes"], peak = roomy["peak_bytes"];
    ASSERT_GT(needed, peak + 1e9) << "an H100 holds a context";
    for (const double memory : {std::ceil(needed), std::ceil(needed) - 1, std::ceil(peak)}) {
      const bool fits = memory >= needed;
      const std::string file = file_of(scenario_of(plan), memory);
      const std::string what = plan.dump() + " on " + std::to_string(memory);
      EXPECT_EQ(run_program("check " + file).exit_code, fits ? 0 : 3) << what;
      EXPECT_EQ(run_program("memory " + file).exit_code, fits ? 0 : 3) << what;
      const Outcome simulated = run_program("simulate " + file + " --json");
      EXPECT_EQ(simulated.exit_code, fits ? 0 : 3) << what;
      EXPECT_EQ(run_program("simulate " + file + " --allow-oom --json").exit_code, 0) << what;
      EXPECT_EQ(run_program("explain memory " + file).exit_code, fits ? 0 : 3) << what;
      const Json report = Json::parse(simulated.out)["memory"];
      EXPECT_EQ(report["fits"], fits) << what;
      EXPECT_EQ(report["verdict"], fits ? "tight" : "does not fit") << what;
      EXPECT_EQ(report["needed_bytes"], needed) << what;
      const Json row = Json::parse(run_program("sweep " + file + " --mbs 1 --jsonl" + new_store()).out);
      EXPECT_EQ(row["state"], fits ? "done" : "does not fit") << what;
      EXPECT_EQ(row["memory"]["verdict"], report["verdict"]) << what;
      EXPECT_EQ(plan_exit_code(file, plan), fits ? 0 : 3) << what;
      EXPECT_EQ(fits_in_what_if(file), fits) << what;
    }
  }
}

TEST(Fits, IsRefusedWithTheSumAndItsParts) {
  const Json plan = kPlans.front();
  const Json memory =
      Json::parse(run_program("simulate " + file_of(scenario_of(plan), 0) + " --json").out)["memory"];
  const std::string file = file_of(scenario_of(plan), memory["needed_bytes"].get<double>() - 1e9);
  const std::string refused = run_program("check " + file).err;
  for (const char* part : {"1 GB (", "too much", "at peak", "CUDA context 1.06 GB", "NCCL buffers"})
    EXPECT_THAT(refused, HasSubstr(part));
  EXPECT_THAT(run_program("memory " + file).out, HasSubstr("1 GB ("));
  EXPECT_THAT(run_program("simulate " + file).out, HasSubstr("too much"));
}

TEST(Fits, OnCpusCountsTheAllocatorAlone) {
  const Json memory = Json::parse(run_program("memory scenarios/gpt-10m-2-cores.json --json").out);
  EXPECT_EQ(memory["needed_bytes"], memory["peak_bytes"]);
  EXPECT_EQ(memory["outside_allocator"]["context_bytes"], 0);
}

}  // namespace
}  // namespace rehearse
