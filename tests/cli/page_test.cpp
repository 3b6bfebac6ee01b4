// Pages and pictures as a user asks for them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Json data_of(const std::string& page) {
  const std::string from = "id=\"data\">";
  const std::size_t begin = page.find(from) + from.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

constexpr const char* kPageRun =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --tp 4 --pp 4 --gbs 32 --seq 4096 ";

TEST(Page, OfARunHoldsItsReportCommandAndScenario) {
  const std::string path = temporary_file("page_whole.html", "");
  const Outcome outcome = run_program(std::string("simulate ") + kPageRun + "--json --html " + path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json data = data_of(text_of_file(path));
  EXPECT_EQ(without_assumed(data["report"]), without_assumed(Json::parse(outcome.out)));
  EXPECT_EQ(data["command"], "rehearse simulate " + std::string(kPageRun) + "--json --html " + path);
  EXPECT_EQ(data["scenario"]["plan"]["tp"], 4);
  EXPECT_TRUE(data["versions"].contains("SimGrid"));
  EXPECT_EQ(data["timeline"]["rows"].size(), 4u);
}

TEST(Page, WhatIfCurvesAgreeWithRunsOfTheReferenceEngine) {
  const std::string path = temporary_file("page_what_if.html", "");
  ASSERT_EQ(run_program(std::string("simulate ") + kPageRun + "--html " + path).exit_code, 0);
  const Json data = data_of(text_of_file(path));
  int compared = 0;
  for (const Json& knob : data["what_if"]) {
    if (knob["label"] != "Tensor parallel") continue;
    for (const Json& row : knob["values"]) {
      std::string flags = std::string(kPageRun) + "--engine reference --json";
      flags.replace(flags.find("--tp 4"), 6, "--tp " + row["value"].dump());
      const Json report = Json::parse(run_program("simulate " + flags).out);
      EXPECT_EQ(row["step_time_s"], report["step_time_s"]) << row;
      EXPECT_EQ(row["fits"], report["memory"]["fits"]) << row;
      ++compared;
    }
  }
  EXPECT_GE(compared, 2);
}

TEST(Page, IsTheSameEveryTimeAndTakesNamesForText) {
  const std::string config =
      temporary_file("<script>alert(1)<script>.json",
                     R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
     "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256})");
  const std::string path = temporary_file("page_names.html", "");
  const std::string command = "simulate --model '" + config +
                              "' --cluster dgx-h100 --gpus 16 --tp 4 --pp 4 --gbs 32 --seq 4096 --html " +
                              path;
  ASSERT_EQ(run_program(command).exit_code, 0);
  const std::string page = text_of_file(path);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(data_of(page)["report"]["model"]["name"].get<std::string>(), HasSubstr("<script>alert(1)"));
  run_program(command);
  EXPECT_EQ(page, text_of_file(path));
}

TEST(Page, OfASweepHoldsEveryRow) {
  const std::string path = temporary_file("page_sweep.html", ""), store = temporary_file("page_sweep.db", "");
  const Outcome outcome = run_program(
      "sweep --model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096 --engine reference "
      "--tp 2,4,8,3 --mbs 1,2 --resume --store " +
      store + " --html " + path);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json data = data_of(text_of_file(path));
  EXPECT_EQ(data["rows"].size(), 8u);
  EXPECT_EQ(data["fields"][0]["name"], "tp");
  EXPECT_THAT(data["command"].get<std::string>(), HasSubstr("--tp 2,4,8,3"));
}

TEST(Page, PicturesOfARunAreSvgAndPng) {
  const std::string svg = temporary_file("page_run.svg", ""), png = temporary_file("page_run.png", "");
  ASSERT_EQ(run_program(std::string("simulate ") + kPageRun + "--svg " + svg + " --png " + png).exit_code, 0);
  EXPECT_THAT(text_of_file(svg), HasSubstr("<svg "));
  EXPECT_EQ(text_of_file(png).substr(1, 3), "PNG");
  const Outcome refused = run_program(std::string("simulate ") + kPageRun + "--png %/none/run.png");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(in_scratch("%/none/run.png")));
}

}  // namespace
}  // namespace rehearse
