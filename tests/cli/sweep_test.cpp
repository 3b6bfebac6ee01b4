// The sweep verb as a user runs it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/quantity.h"
#include "program.h"
#include "sanitized.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

constexpr const char* kScenario =
    "sweep --model llama3-8b --cluster dgx-h100 --gpus 16 --gbs 64 --seq 4096 --engine reference ";

// Stores of tests lie in a folder of their own, not in the user's cache.
std::string new_store() {
  static int count = 0;
  const std::string path = temporary_file("store" + std::to_string(++count) + ".db", "");
  std::filesystem::remove(path);
  return " --store " + path + " ";
}

std::string text_of_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<Json> lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(Sweep, HasARowForEveryPointWithStateAndReason) {
  const Outcome outcome = run_program(kScenario + new_store() + "--tp 1,8,3 --mbs 1,64 --jsonl");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<Json> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0]["tp"], 1);
  EXPECT_EQ(lines[0]["state"], "does not fit");
  EXPECT_GT(lines[0]["step_time_s"].get<double>(), 0);
  EXPECT_THAT(lines[0]["reason"].get<std::string>(), HasSubstr("needs"));
  EXPECT_EQ(lines[2]["tp"], 8);
  EXPECT_EQ(lines[2]["mbs"], 1);
  EXPECT_EQ(lines[2]["state"], "done");
  EXPECT_EQ(lines[2]["plan"]["dp"], 2) << "GPUs are kept, so dp follows";
  EXPECT_EQ(lines[2]["plan"]["global_batch"], 64);
  EXPECT_EQ(lines[4]["state"], "illegal");
  EXPECT_THAT(lines[4]["reason"].get<std::string>(), HasSubstr("attention heads"));
  EXPECT_FALSE(lines[4].contains("step_time_s"));
}

TEST(Sweep, RowsEqualSingleSimulations) {
  const auto lines = lines_of(run_program(kScenario + new_store() + "--tp 4,8 --mbs 1,2 --jsonl").out);
  ASSERT_EQ(lines.size(), 4u);
  for (const Json& line : lines) {
    const std::string flags = " --tp " + line["tp"].dump() + " --mbs " + line["mbs"].dump() + " --json";
    const std::string simulate = std::string(kScenario).replace(0, 5, "simulate") + flags;
    const Json report = without_assumed(Json::parse(run_program(simulate).out));
    for (const auto& [key, value] : report.items()) EXPECT_EQ(line[key], value) << key;
  }
}

TEST(Sweep, BytesOfOutputDoNotHangOnJobsOrEngineProcesses) {
  for (const char* engine : {"reference", "simgrid"}) {
    const std::string flags =
        with(kScenario, std::string("--tp 2:8:*2 --pp 1,2 --engine ") + engine + " --jsonl");
    const Outcome one = run_program(flags + new_store() + "--jobs 1");
    const Outcome five = run_program(flags + new_store() + "--jobs 5");
    EXPECT_EQ(one.exit_code, 0) << one.err;
    EXPECT_EQ(one.out, five.out) << engine;
    EXPECT_EQ(lines_of(one.out).size(), 6u);
  }
}

TEST(Sweep, ShardsMergeToTheWhole) {
  const std::string flags = std::string(kScenario) + "--tp 2:8:*2 --mbs 1,2,4 --jsonl";
  const Outcome whole = run_program(flags + new_store());
  std::string merged;
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    const std::string store = new_store();
    const Outcome part = run_program(flags + store + "--shard " + shard);
    EXPECT_EQ(lines_of(part.out).size(), 3u);
    merged += store.substr(std::string(" --store").size());
  }
  const Outcome all = run_program(flags + new_store() + "--merge" + merged);
  EXPECT_EQ(all.out, whole.out);
  EXPECT_THAT(all.err, HasSubstr("9 rows are already known, 0 remain"));
}

// The program itself, to be killed.
class Running {
 public:
  explicit Running(const std::string& arguments) : process_(fork()) {
    if (process_ != 0) return;
    setpgid(0, 0);
    const std::string command =
        std::string("cd ") + SOURCE_DIR + " && exec " + REHEARSE + " " + arguments + " >/dev/null 2>&1";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int end_with(int signal) {
    kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t process_;
};

TEST(Sweep, ResumesAfterKillsToTheSameBytes) {
  for (const char* engine : {"reference", "simgrid"}) {
    const std::string varied = "--tp 2:8:*2 --pp 1,2 --mbs 1,2,4 --zero 0,1 --recompute none,full --engine ";
    const std::string flags = with(kScenario, varied + engine);
    const Outcome whole = run_program(flags + new_store() + "--jsonl");
    const std::string store = new_store();
    int killed = 0;
    for (const int wait_ms : {30, 70, 110, 150, 60}) {
      Running sweep(flags + store + "--resume");
      std::this_thread::sleep_for(std::chrono::milliseconds(wait_ms));
      killed += sweep.end_with(SIGKILL) == 128 + SIGKILL;
    }
    const Outcome resumed = run_program(flags + store + "--resume --jsonl");
    EXPECT_EQ(resumed.out, whole.out) << engine;
    EXPECT_GT(killed, 0);
    EXPECT_THAT(run_program(flags + store + "--resume --jsonl").err, HasSubstr("known, 0 remain"));
  }
}

TEST(Sweep, CtrlCKeepsWhatItHas) {
  const std::string flags =
      with(kScenario, "--tp 2:8:*2 --pp 1,2 --gbs 64:4096:+64 --engine simgrid --jobs 1");
  const std::string path = temporary_file("interrupted.db", "");
  std::filesystem::remove(path);
  const std::string store = " --store " + path + " ";
  const auto rows = [&] {  // that shard has none to run
    if (!std::filesystem::exists(path)) return std::size_t{0};
    return lines_of(run_program(flags + store + "--resume --shard 1000/1000 --jsonl").out).size();
  };
  Running sweep(flags + store + "--csv");
  std::size_t before = 0;
  for (int i = 0; i < 100 * kSlower && before == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    before = rows();
  }
  EXPECT_EQ(sweep.end_with(SIGINT), 130);
  EXPECT_GT(before, 0U);
  EXPECT_GE(rows(), before);
}

TEST(Sweep, TakesAnyFieldOfTheScenarioAndOfTheCluster) {
  const Outcome plan = run_program(kScenario + new_store() + "--tp 8 --set plan.micro_batch=1,2 --jsonl");
  ASSERT_EQ(lines_of(plan.out).size(), 2u) << plan.err;
  EXPECT_EQ(lines_of(plan.out)[1]["plan"]["micro_batch"], 2);
  const Outcome nics = run_program(kScenario + new_store() +
                                   "--tp 8 --overlap-grad-reduce off "
                                   "--set cluster.node.nics.bandwidth=100Gbps,400Gbps --jsonl");
  const std::vector<Json> lines = lines_of(nics.out);
  ASSERT_EQ(lines.size(), 2u) << nics.err;
  EXPECT_EQ(lines[0]["cluster.node.nics.bandwidth"], "100Gbps");
  EXPECT_GT(lines[0]["step_time_s"].get<double>(), lines[1]["step_time_s"].get<double>());
}

TEST(Sweep, CsvGoesToAFileAndNeverOverAScenario) {
  const std::string csv = temporary_file("rows.csv", "");
  EXPECT_EQ(run_program(kScenario + new_store() + "--tp 4,8 --csv " + csv).exit_code, 0);
  std::ifstream in(csv);
  std::string head;
  std::getline(in, head);
  EXPECT_THAT(head, HasSubstr("tp,state,reason,"));
  const Outcome refused =
      run_program(kScenario + new_store() + "scenarios/llama3-70b-512-h100.json --csv rows.json");
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_FALSE(std::filesystem::exists("rows.json"));
}

TEST(Sweep, ShowsTheMemoryThatDecides) {
  const std::string store = new_store();
  const Outcome table = run_program(kScenario + store + "--tp 8");
  EXPECT_THAT(table.out, HasSubstr("total memory"));
  const Json row = lines_of(run_program(kScenario + store + "--tp 8 --resume --jsonl").out).at(0);
  const double needed = row["memory"]["needed_bytes"];
  EXPECT_GT(needed, row["memory"]["peak_bytes"].get<double>() + 1e9) << "an H100 holds a context";
  EXPECT_THAT(table.out, HasSubstr("  " + format_bytes(needed) + "  fastest"));
}

// Table, page and CSV agree where a small batch has the shorter step.
TEST(Sweep, CallsTheRowOfMostTokensFastest) {
  const std::string csv = temporary_file("rows.csv", ""), page = temporary_file("rows.html", "");
  const std::string store = new_store(), flags = with(kScenario, "--tp 8 --gbs 8,512") + store;
  std::istringstream table(run_program(flags).out);
  std::string head, small, large;
  std::getline(table, head);
  std::getline(table, small);
  std::getline(table, large);
  EXPECT_THAT(small, Not(HasSubstr("fastest")));
  EXPECT_THAT(large, HasSubstr("fastest"));
  EXPECT_EQ(run_program(flags + "--resume --csv " + csv + " --html " + page).exit_code, 0);
  EXPECT_THAT(text_of_file(csv), HasSubstr("8,done,,false,"));
  EXPECT_THAT(text_of_file(csv), HasSubstr("512,done,,true,"));
  const std::string text = text_of_file(page);
  const std::size_t at = text.find("\"fastest\":true");
  ASSERT_NE(at, std::string::npos);
  EXPECT_GT(at, text.rfind("\"values\":[512]"));
}

TEST(Sweep, DrawsItsRowsWithWhatWasHeldFixed) {
  const std::string svg = temporary_file("rows.svg", ""), png = temporary_file("rows.png", "");
  const std::string flags = std::string(kScenario) + "--tp 2,4,8,3 --svg " + svg + " --png " + png;
  const Outcome outcome = run_program(flags + new_store());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::string picture = text_of_file(svg);
  EXPECT_THAT(picture, HasSubstr("Step time against tensor parallel (tp)"));
  EXPECT_THAT(picture, HasSubstr("Fixed: llama3-8b, dgx-h100, 16 GPUs"));
  EXPECT_THAT(picture, HasSubstr("tp 3: illegal"));
  EXPECT_EQ(text_of_file(png).substr(1, 3), "PNG");
  run_program(flags + new_store() + "--plot memory");
  EXPECT_THAT(text_of_file(svg), HasSubstr("Memory of the fullest rank against"));
}

TEST(Sweep, RefusesAPlotBeforeItRuns) {
  for (const char* flags : {"--tp 4 --svg a.svg", "--tp 4,8 --plot bubble --svg a.svg",
                            "--tp 4,8 --plot heatmap --svg a.svg", "--tp 4,8 --plot nothing --svg a.svg"}) {
    const Outcome outcome = run_program(kScenario + new_store() + flags);
    EXPECT_EQ(outcome.exit_code, 2) << flags;
    EXPECT_THAT(outcome.err, Not(HasSubstr(" done"))) << flags;
  }
}

TEST(Sweep, BadListsAndStoresAreRefused) {
  const std::pair<const char*, const char*> cases[] = {{"--tp 1,a", "must be an integer"},
                                                       {"--tp 1,,2", "empty item"},
                                                       {"--pp 8:2", "backwards"},
                                                       {"--tp 1,2,2", "twice"},
                                                       {"--tp 1,2 --set plan.tp=4,8", "twice"},
                                                       {"--set plan.tp", "FIELD=VALUE"},
                                                       {"--set model.x.y=1,2 ", "no place in a scenario"},
                                                       {"--shard 4/3", "i/n"},
                                                       {"--merge %/nowhere.db", "no such store"},
                                                       {"--csv --jsonl", "is named for two things"}};
  for (const auto& [flags, words] : cases) {
    const Outcome outcome = run_program(kScenario + new_store() + flags);
    EXPECT_EQ(outcome.exit_code, 2) << flags << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(words)) << flags;
  }
}

TEST(Sweep, EndsAsItsRowsDoWhenNoneCanRun) {
  EXPECT_EQ(run_program(kScenario + new_store() + "--tp 3,5").exit_code, 2);
  EXPECT_EQ(run_program(kScenario + new_store() + "--tp 1 --mbs 32,64 ").exit_code, 2) << "dp 16 x 32 > 64";
  EXPECT_EQ(run_program(with(kScenario, "--tp 1,2 --gbs 1024 --mbs 64") + new_store()).exit_code, 3);
}

}  // namespace
}  // namespace rehearse
