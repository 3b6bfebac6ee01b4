// Comparing from the command line: files in, a table or JSON and an exit code out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string report(const std::string& name, const std::string& flags) {
  const Outcome run =
      run_program("simulate scenarios/gpt-10m-2-cores.json --engine reference --json " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return temporary_file(name, run.out);
}

std::string trace(const std::string& name, const std::string& flags) {
  const std::string path = temporary_file(name, "");
  const Outcome run =
      run_program("simulate scenarios/gpt-10m-2-cores.json --engine reference --trace " + path + " " + flags);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return path;
}

TEST(Compare, SaysHowFarTwoPlansAreApartAndGates) {
  const std::string a = report("a.json", ""), b = report("b.json", "--gbs 32");
  const Outcome table = run_program("compare " + a + " " + b);
  EXPECT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("plan.global_batch: A 16, B 32"), HasSubstr("step_time_s")));
  EXPECT_EQ(run_program("compare " + a + " " + b + " --fail-above 60%").exit_code, 0);
  const Outcome failed = run_program("compare " + a + " " + b + " --fail-above step_time=5% --json");
  EXPECT_EQ(failed.exit_code, 5);
  EXPECT_THAT(failed.err, HasSubstr("step_time_s differs by -4"));
  EXPECT_EQ(Json::parse(failed.out)["failed"].size(), 1u);
}

TEST(Compare, DrawsAndJoinsTwoTraces) {
  const std::string a = trace("a.trace", ""), b = trace("b.trace", "--schedule gpipe");
  const std::string svg = temporary_file("both.svg", ""), both = temporary_file("both.json", "");
  const Outcome run =
      run_program("compare " + a + " " + b + " --svg " + svg + " --trace " + both + " --json");
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_GT(std::filesystem::file_size(svg), 5000u);
  EXPECT_GT(std::filesystem::file_size(both), std::filesystem::file_size(a));
  const Json json = Json::parse(run.out);
  EXPECT_EQ(json["otherwise"][0]["field"], "plan.schedule");
  EXPECT_THAT(run_program("compare " + a + " " + b).out, HasSubstr("ops.F.mean_s"));
}

TEST(Compare, RefusesWhatIsNeitherReportNorTrace) {
  const std::string a = report("a.json", "");
  const Outcome scenario = run_program("compare scenarios/gpt-10m-2-cores.json " + a);
  EXPECT_EQ(scenario.exit_code, 2);
  EXPECT_THAT(scenario.err, HasSubstr("neither a report"));
  EXPECT_EQ(run_program("compare " + a + " nowhere.json").exit_code, 2);
  const std::string list = temporary_file("list.json", "[1]");
  EXPECT_EQ(run_program("compare " + list + " " + a).exit_code, 2);
  const std::string foreign = temporary_file("foreign.json", R"({"traceEvents": []})");
  EXPECT_THAT(run_program("compare " + foreign + " " + a).err, HasSubstr("only traces that --trace writes"));
  const Outcome picture = run_program("compare " + a + " " + a + " --svg x.svg");
  EXPECT_EQ(picture.exit_code, 2);
  EXPECT_THAT(picture.err, HasSubstr("is a report"));
  EXPECT_EQ(run_program("compare " + a).exit_code, 2);
  EXPECT_EQ(run_program("compare " + a + " " + a + " --fail-above 5").exit_code, 2);
}

}  // namespace
}  // namespace rehearse
