// How good are the schedules of `--schedule auto`, compared with the best named one and the proven bound?
//   bench_auto_schedule [seconds of work, 30]
// Runs the plans of docs/auto-schedule.md. order_grid.py runs 288 others.
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "scenario/flags.h"
#include "scenario/scenario.h"
#include "scenario/schedule_search.h"

namespace rehearse {
namespace {

using Values = std::map<std::string, std::string>;

struct Row {
  std::string name;
  Values flags;
  double memory_bytes = 0;
  bool layers = false;
  std::string file = "";
};

constexpr const char* kDeepseek = SOURCE_DIR "/scenarios/deepseek-v3-1024-h100-ep64.json";

struct Figures {
  double named_s = 0, found_s = 0, least_s = 0, seconds = 0;
};

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Figures run(const Row& row, double seconds) {
  GivenFlags given{row.file, row.flags};
  given.values["--schedule"] = "auto";
  if (row.layers) given.values["--layers-per-stage"] = "auto";
  Replaced replaced;
  replaced.without_search = true;
  Scenario scenario = read_scenario(collect(given), replaced);
  scenario.schedule_search->memory_bytes = row.memory_bytes;
  scenario.schedule_search->seconds = seconds;
  const double begin_s = now_s();
  seek_schedule(scenario);
  const FoundSchedule& found = *scenario.found_schedule;
  return {found.named ? found.named->step_time_s : 0, found.step_time_s, found.least_time_s.value_or(0),
          now_s() - begin_s};
}

std::string say_row(const Row& row, const Figures& of) {
  const auto percent = [](double a, double b) { return b > 0 ? 100 * (a / b - 1) : 0; };
  return fmt::format(
      "{:<58} named {:8.4f}  found {:8.4f} ({:+5.2f} %)  bound {:8.4f} (gap {:5.2f} %)  {:5.1f} s", row.name,
      of.named_s, of.found_s, percent(of.found_s, of.named_s), of.least_s, percent(of.found_s, of.least_s),
      of.seconds);
}

Values llama70(const char* batch, const char* vpp) {
  return {{"--model", "llama3-70b"},
          {"--cluster", "dgx-h100"},
          {"--gpus", "128"},
          {"--tp", "8"},
          {"--pp", "8"},
          {"--mbs", "1"},
          {"--seq", "8192"},
          {"--sequence-parallel", "on"},
          {"--gbs", batch},
          {"--vpp", vpp}};
}

std::vector<Row> table() {
  std::vector<Row> rows;
  for (const double gb : {48.9, 60.0, 80.8})
    rows.push_back({fmt::format("llama3-70b, 16 microbatches, {} GB", gb), llama70("32", "10"), gb * 1e9});
  for (const char* batch : {"64", "128"})
    for (const double gb : {60.0, 80.8})
      rows.push_back({fmt::format("llama3-70b, batch {}, {} GB", batch, gb), llama70(batch, "10"), gb * 1e9});
  const Values gpt = {{"--model", "gpt3-175b"},
                      {"--cluster", "selene"},
                      {"--gpus", "1024"},
                      {"--tp", "8"},
                      {"--pp", "8"},
                      {"--vpp", "12"},
                      {"--mbs", "1"},
                      {"--seq", "2048"},
                      {"--gbs", "384"},
                      {"--recompute", "full"}};
  rows.push_back({"gpt3-175b, 24 microbatches, full recompute, 60 GB", gpt, 60e9});
  Values llama8 = {{"--model", "llama3-8b"},
                   {"--cluster", "dgx-h100"},
                   {"--gpus", "4"},
                   {"--tp", "1"},
                   {"--pp", "4"},
                   {"--mbs", "1"},
                   {"--gbs", "8"}};
  rows.push_back({"llama3-8b, pp 4, moved layers", llama8, 80.8e9, true});
  llama8["--vpp"] = std::to_string(8);
  rows.push_back({"llama3-8b, pp 4, vpp 8, even layers", llama8, 80.8e9});
  rows.push_back({"deepseek-v3, 32 microbatches, as shipped", {{"--gbs", "2048"}}, 80.8e9, false, kDeepseek});
  rows.push_back(
      {"deepseek-v3, 32 microbatches, moved layers", {{"--gbs", "2048"}}, 80.8e9, true, kDeepseek});
  return rows;
}

int main_of(double seconds) {
  int slower = 0;
  for (const Row& row : table()) {
    const Figures of = run(row, seconds);
    fmt::print("{}\n", say_row(row, of));
    std::fflush(stdout);
    slower += of.named_s > 0 && of.found_s > of.named_s;
  }
  fmt::print("slower than a named schedule: {}\n", slower);
  return slower == 0 ? 0 : 1;
}

}  // namespace
}  // namespace rehearse

int main(int count, char** words) {
  return rehearse::main_of(count > 1 ? std::atof(words[1]) : 30);
}
