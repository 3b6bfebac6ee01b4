// Ctrl-C, and a scheduler's SIGTERM, at any time: every verb ends soon with 130, keeps finished results, and
// leaves no partial file.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "figures.h"
#include "processes.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr double kBound_s = 15;
constexpr const char* kScenario = SOURCE_DIR "/scenarios/llama3-70b-512-h100.json";

struct Verb {
  std::string name;
  Words words;
  double longest_s = 1;  // moments of the signal
  std::vector<int> exit_codes = {130};
  std::string said = {};
};

// That it left: whole JSON or pages, never a part of one.
void expect_whole(const Scratch& folder) {
  for (const std::string& name : folder.names()) {
    EXPECT_EQ(name.find(".partial"), std::string::npos) << name;
    const std::string text = contents(folder.file(name));
    if (name.ends_with(".json")) {
      EXPECT_TRUE(nlohmann::json::accept(text)) << name;
    }
    if (name.ends_with(".html")) {
      EXPECT_TRUE(text.ends_with("</html>\n")) << name;
    }
    if (name.ends_with(".svg")) {
      EXPECT_THAT(text, HasSubstr("</svg>")) << name;
    }
  }
}

void expect_ends(const Scratch& folder, Verb verb) {
  verb.words.insert(verb.words.begin(), REHEARSE);
  Moments moments;
  std::vector<double> seconds;
  for (int i = 0; i < times(2, 20); ++i) {
    Process process(verb.words, {{"XDG_CACHE_HOME", folder.path()}}, folder.file("log"));
    process.await_handlers();
    sleep_s(moments.between(0, verb.longest_s));
    process.send(i % 2 == 0 ? SIGINT : SIGTERM);
    const Stopwatch watch;
    // One that had ended before has nothing to be interrupted in.
    EXPECT_THAT(process.wait(60), testing::AnyOf(testing::AnyOfArray(verb.exit_codes), 0))
        << verb.name << ": " << process.said();
    seconds.push_back(watch.seconds());
    EXPECT_THAT(process.said(), HasSubstr(verb.said));
    expect_whole(folder);
  }
  figure(fmt::format("{}, Ctrl-C or SIGTERM", verb.name), seconds, kBound_s);
}

TEST(Interruption, EndsASweepThatKeepsItsRows) {
  const Scratch folder;
  expect_ends(folder, {"sweep",
                       {"sweep", kScenario, "--mbs", "1,2,4", "--vpp", "1,5", "--gbs", "64:8192:+64", "--csv",
                        folder.file("rows.csv"), "--html", folder.file("page.html"), "--store",
                        folder.file("rows.db"), "--resume"}});
  if (!kSanitized) {  // else none may be
    EXPECT_THAT(contents(folder.file("rows.csv")), HasSubstr("done"));
  }
}

TEST(Interruption, EndsASweepOfThreads) {
  const Scratch folder;
  expect_ends(folder,
              {"sweep of threads",
               {"sweep", kScenario, "--engine", "reference", "--gbs", "64:1048576:+64", "--vpp", "1"}});
}

TEST(Interruption, EndsASearch) {
  const Scratch folder;
  expect_ends(
      folder,
      {"plan", {"plan", "--model", "gpt3-175b", "--cluster", "selene", "--gpus", "4096", "--gbs", "1536"}});
}

// The search would continue for minutes.
TEST(Interruption, OfASearchAnswersWithTheBestSoFar) {
  const Scratch folder;
  Process process({REHEARSE, "plan", "--model", "gpt3-175b", "--cluster", "selene", "--gpus", "4096", "--gbs",
                   "1536", "--top", "1000"},
                  {{"XDG_CACHE_HOME", folder.path()}}, folder.file("log"));
  process.await_handlers();
  sleep_s(kSanitized ? 30 : 4);
  process.send(SIGINT);
  EXPECT_EQ(process.wait(120), 130) << process.said();
  EXPECT_THAT(process.said(), HasSubstr("interrupted; "));
  EXPECT_THAT(process.said(), HasSubstr("were not run"));
}

TEST(Interruption, OfASweepSaysHowManyRowsAreKept) {
  const Scratch folder;
  Process process(
      {REHEARSE, "sweep", kScenario, "--engine", "reference", "--gbs", "64:1048576:+64", "--vpp", "1"},
      {{"XDG_CACHE_HOME", folder.path()}}, folder.file("log"));
  process.await_handlers();
  sleep_s(kSanitized ? 10 : 1);
  process.send(SIGINT);
  EXPECT_EQ(process.wait(60), 130) << process.said();
  EXPECT_THAT(process.said(), HasSubstr(" of 16384 rows are kept: continue with --resume"));
}

TEST(Interruption, EndsAValidation) {
  const Scratch folder;
  expect_ends(folder, {"validate", {"validate", SOURCE_DIR "/calibrate/data/runs/published_runs.jsonl"}});
}

TEST(Interruption, EndsACalibrationThatKeepsWhatIsTimed) {
  const Scratch folder;
  const std::string profile = folder.file("profile.json");
  expect_ends(folder,
              {"calibrate",
               {"calibrate", SOURCE_DIR "/scenarios/gpt-10m-2-cores.json", "--device", "cpu", "-o", profile},
               2});
}

TEST(Interruption, EndsTheStudioWellOnceItServes) {
  const Scratch folder;
  expect_ends(folder, {"studio",
                       {"studio", "--port", "0", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus",
                        "8", "--tp", "8", "--gbs", "16"},
                       2});
}

TEST(Interruption, EndsTheWritingOfFiles) {
  const Scratch folder;
  expect_ends(folder, {"simulate with files",
                       {"simulate", kScenario, "--gbs", "8192", "--trace", folder.file("trace.json"),
                        "--html", folder.file("page.html"), "--svg", folder.file("picture.svg")},
                       0.5});
}

}  // namespace
}  // namespace rehearse
