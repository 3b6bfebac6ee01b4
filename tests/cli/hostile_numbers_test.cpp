// Every number of every input is replaced by impossible numbers. Each is refused with its place, or the
// resulting step is a finite time above 0. Nothing aborts, hangs or is NaN.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "run/iteration.h"
#include "sanitized.h"
#include "scenario/scenario.h"
#include "scratch.h"

namespace rehearse {
namespace {

// Processor seconds for one case; a slow machine takes a tenth of it for the largest.
constexpr double kMaxSeconds = 5 * kSlower;

const std::vector<std::string> kHostile = {"0",     "-1",    "5e-324", "1e-300",
                                           "1e300", "1e308", "1.5",    "9223372036854775807"};

// "450GB/s" is a number with a unit, "1.5" and "dgx-h100" are none.
std::string unit_of(const std::string& text) {
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string::npos) return "";
  const std::string unit = text.substr(end);
  static const std::set<std::string> known = {"GB/s", "TB/s", "MB/s",   "Gbps",   "GB", "GiB", "MiB",   "us",
                                              "ns",   "ms",   "TFLOPS", "GFLOPS", "MB", "s",   "PFLOPS"};
  return known.contains(unit) ? unit : "";
}

// Where numbers stand; of the entries of an array the first and the last.
void find_numbers(const Json& json, const Json::json_pointer& pointer,
                  std::vector<Json::json_pointer>& found) {
  if (json.is_object()) {
    for (const auto& item : json.items()) find_numbers(item.value(), pointer / item.key(), found);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i)
      if (i == 0 || i + 1 == json.size()) find_numbers(json[i], pointer / i, found);
  } else if (json.is_number() || (json.is_string() && !unit_of(json.get<std::string>()).empty())) {
    found.push_back(pointer);
  }
}

std::vector<Json> hostile_values(const Json& value) {
  std::vector<Json> values = {"NaN", nullptr};
  if (value.is_number()) {
    for (const std::string& number : kHostile) values.push_back(Json::parse(number));
    return values;
  }
  const std::string unit = unit_of(value.get<std::string>());
  for (const std::string& number : kHostile) values.push_back(number + unit);
  for (const char* number : {"nan", "inf", "-inf", "0x10", "1e400", ""}) values.push_back(number + unit);
  return values;
}

// A file name that no earlier case had: readers cache files.
std::string file_of(const Json& json) {
  static int files = 0;
  return scratch().write(fmt::format("hostile-{}.json", files++), json.dump());
}

struct Tally {
  int refused = 0, ran = 0;
};

// The step of the scenario, by the reference engine.
void try_scenario(const Json& scenario, Tally& tally) {
  ScenarioSource source;
  source.json = scenario;
  double step_time_s = 0;
  static Inputs inputs;
  Replaced replaced;
  replaced.inputs = &inputs;
  try {
    Scenario read = read_scenario(source, replaced);
    read.experiment.engine = Engine::reference;
    step_time_s = run_iteration(read.experiment).report.step_time_s;
  } catch (const InputError& error) {
    EXPECT_FALSE(error.violations().front().rule.empty());
    ++tally.refused;
    return;
  } catch (const MissingCalibration&) {  // no profile has the kernels of such a model
    ++tally.refused;
    return;
  }
  ++tally.ran;
  EXPECT_TRUE(std::isfinite(step_time_s) && step_time_s > 0) << step_time_s;
}

// `use` makes a scenario of the changed input.
template <typename Use>
Tally try_all(const Json& whole, const Use& use) {
  std::vector<Json::json_pointer> numbers;
  find_numbers(whole, Json::json_pointer(), numbers);
  EXPECT_FALSE(numbers.empty());
  Tally tally;
  for (const Json::json_pointer& place : numbers) {
    for (const Json& value : hostile_values(whole.at(place))) {
      SCOPED_TRACE(place.to_string() + " = " + value.dump());
      Json changed = whole;
      changed[place] = value;
      const auto begin = std::chrono::steady_clock::now();
      try_scenario(use(changed), tally);
      EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), kMaxSeconds);
    }
  }
  EXPECT_GT(tally.refused, 0);
  return tally;
}

Json shipped(const std::string& path) {
  return read_json_file(std::string(SOURCE_DIR) + "/" + path);
}

struct ShippedCluster {
  const char* name;
  const char* profile;
  const char* precision;
  int gpus, tp;
};

std::ostream& operator<<(std::ostream& out, const ShippedCluster& cluster) {
  return out << cluster.name;
}

class HostileCluster : public ::testing::TestWithParam<ShippedCluster> {};

TEST_P(HostileCluster, EveryNumberIsRefusedOrGivesAStep) {
  const Json scenario = {{"model", "llama3-8b"},
                         {"profile", GetParam().profile},
                         {"gpus", GetParam().gpus},
                         {"plan",
                          {{"tp", GetParam().tp},
                           {"pp", 2},
                           {"global_batch", 16},
                           {"seq", 1024},
                           {"zero", 1},
                           {"precision", GetParam().precision}}}};
  const Tally tally =
      try_all(shipped(fmt::format("topologies/{}.json", GetParam().name)), [&](const Json& changed) {
        Json whole = scenario;
        whole["cluster"] = file_of(changed);
        return whole;
      });
  EXPECT_GT(tally.ran, 0);  // some values are extreme and legal
}

INSTANTIATE_TEST_SUITE_P(Shipped, HostileCluster,
                         ::testing::Values(ShippedCluster{"dgx-h100", "h100-sxm", "bf16", 32, 8},
                                           ShippedCluster{"dgx-a100-80gb", "a100-sxm-80gb", "bf16", 32, 8},
                                           ShippedCluster{"dgx-b200", "b200-sxm", "bf16", 32, 8},
                                           ShippedCluster{"dgx-1-v100", "v100-sxm", "fp16", 8, 4},
                                           ShippedCluster{"p3.16xlarge", "v100-sxm", "fp16", 16, 4},
                                           ShippedCluster{"frontier", "h100-sxm", "bf16", 32, 8},
                                           ShippedCluster{"a40-nvlink-pairs", "a100-pcie-80gb", "bf16", 16,
                                                          2}),
                         [](const auto& cluster) {
                           std::string name = cluster.param.name;
                           std::erase_if(name,
                                         [](unsigned char letter) { return std::isalnum(letter) == 0; });
                           return name;
                         });

// The profile with tables of four rows.
Json small_profile() {
  Json profile = shipped("calibrate/profiles/h100-sxm.json");
  constexpr std::size_t kRows = 4;
  const auto cut = [](Json& table) {
    Json& rows = table["rows"];
    while (rows.size() > kRows) rows.erase(rows.size() / 2);
  };
  for (auto& table : profile["gemm"]) cut(table);
  for (auto& table : profile["stream"]) cut(table);
  return profile;
}

TEST(HostileProfile, EveryNumberIsRefusedOrGivesAStep) {
  Json profile = small_profile();
  try_all(profile, [&](const Json& changed) {
    return Json{{"model", "llama3-8b"},
                {"cluster", "dgx-h100"},
                {"profile", file_of(changed)},
                {"gpus", 16},
                {"plan", {{"tp", 8}, {"pp", 2}, {"global_batch", 16}, {"seq", 1024}}}};
  });
}

TEST(HostileModel, EveryNumberIsRefusedOrGivesAStep) {
  for (const char* name :
       {"llama3-8b", "mixtral-8x7b", "deepseek-v3", "gpt2", "nemotron-h-8b", "gpt-oss-20b"}) {
    SCOPED_TRACE(name);
    try_all(shipped(fmt::format("scenarios/models/{}.json", name)), [&](const Json& changed) {
      return Json{{"model", file_of(changed)},
                  {"cluster", "dgx-h100"},
                  {"gpus", 8},
                  {"plan", {{"global_batch", 8}, {"seq", 1024}}}};
    });
  }
}

TEST(HostileScenario, EveryNumberIsRefusedOrGivesAStep) {
  const Json whole = {{"model", "mixtral-8x7b"},
                      {"cluster", "dgx-h100"},
                      {"gpus", 32},
                      {"gpu_spread", 0.01},
                      {"jitter", 0.01},
                      {"message_jitter", 0.01},
                      {"seed", 1},
                      {"slow", "rank=3:0.5"},
                      {"plan",
                       {{"tp", 2},
                        {"cp", 1},
                        {"pp", 2},
                        {"vpp", 2},
                        {"dp", 8},
                        {"ep", 4},
                        {"etp", 1},
                        {"sequence_parallel", true},
                        {"micro_batch", 1},
                        {"global_batch", 32},
                        {"seq", 1024},
                        {"zero", 1},
                        {"zero_shard", 0},
                        {"prefetch", 1},
                        {"microbatch_group", 2},
                        {"clip_grad", 1.0},
                        {"bucket", "160MB"},
                        {"moe_imbalance", 1.2},
                        {"moe_capacity", 0},
                        {"core_release", 0},
                        {"recompute", "full"},
                        {"recompute_num_layers", 1},
                        {"tp_comm_proj_sms", 0},
                        {"moe_dispatcher_sms", 0},
                        {"train_metrics", 0}}}};
  const Tally tally = try_all(whole, [](const Json& changed) { return changed; });
  EXPECT_GT(tally.ran, 0);
}

TEST(HostileScenario, SpeedsOfSlowPartsAreRefusedOrGiveAStep) {
  Tally tally;
  for (const std::string& number : kHostile)
    for (const char* part : {"rank=3:", "nic=0.1:", "nvlink=0.1:", "link=leaf0.rail0:"}) {
      SCOPED_TRACE(part + number);
      try_scenario({{"model", "llama3-8b"},
                    {"cluster", "dgx-h100"},
                    {"gpus", 16},
                    {"slow", part + number},
                    {"plan", {{"tp", 8}, {"global_batch", 16}, {"seq", 1024}}}},
                   tally);
    }
  EXPECT_GT(tally.refused, 0);
}

}  // namespace
}  // namespace rehearse
