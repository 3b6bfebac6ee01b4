#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cases.h"
#include "result/summary.h"

namespace rehearse {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

Report example() {
  return make_case(small_plan(2, 1, 4, 2), Durations{1, 2, 0.1, 0.1, 0.1}).report;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Code blocks of the README are 88 columns wide.
TEST(Summary, FitsATerminal) {
  Report report = example();
  report.facts.schedule_name = "interleaved-1f1b";
  report.facts.extrapolated_share = 0.6;
  report.plan.tp = report.plan.pp = report.plan.vpp = report.plan.cp = 16;
  report.plan.dp = 1024;
  report.plan.global_batch = 1024 * 1024;
  report.plan.seq = 131072;
  report.bubble_ideal = 0.123;
  report.mean_time.bubble = report.mean_time.exposed_dp = 0.2 * report.step_time_s;
  const auto lines = lines_of(write_summary(report, false));
  EXPECT_GE(lines.size(), 18u);
  EXPECT_LE(lines.size(), 31u);
  for (const std::string& line : lines) EXPECT_LE(line.size(), 88u) << line;
}

TEST(Summary, NamesConventionsAndProvenance) {
  Report report = example();
  report.facts.warnings = {"the clock stood still"};
  report.facts.extrapolated_share = 0.25;
  report.model.not_modelled = {"alibi"};
  const std::string text = write_summary(report, false);
  for (const char* part :
       {"step time", "tokens/s/GPU", "MFU", "HFU", "full score matrix", "ideal", "exposed pp", "exposed dp",
        "peak memory", "free", "test profile (published), 25.0 %", "warning the clock stood still",
        "\"alibi\" is ignored"})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Summary, CallsNoBubbleIdealThatAnOrderMayUndercut) {
  Report report = example();
  EXPECT_THAT(write_summary(report, false), HasSubstr("(ideal "));
  report.facts.bubble_ideal = 0.1;
  EXPECT_THAT(write_summary(report, false), HasSubstr("(in equal stages "));
}

TEST(Summary, SaysHowMuchIsTooMuch) {
  Report report = example();
  report.facts.gpu_memory_bytes = 1e6;
  EXPECT_THAT(write_summary(report, false), HasSubstr("too much"));
}

TEST(Summary, EscapesOnlyWithColour) {
  EXPECT_THAT(write_summary(example(), false), Not(HasSubstr("\x1b")));
  std::string text = write_summary(example(), true);
  EXPECT_THAT(text, HasSubstr("\x1b[1m"));
  for (std::size_t at; (at = text.find('\x1b')) != std::string::npos;)
    text.erase(at, text.find('m', at) - at + 1);
  EXPECT_EQ(text, write_summary(example(), false));
}

TEST(Summary, OfAnEmptyReportDoesNotFail) {
  EXPECT_THAT(write_summary(Report{}, true), HasSubstr("step time"));
}

}  // namespace
}  // namespace rehearse
