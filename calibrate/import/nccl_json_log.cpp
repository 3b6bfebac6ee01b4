#include "calibrate/import/nccl_json_log.h"

#include <algorithm>
#include <set>

namespace rehearse::nccl {

namespace {

constexpr double kMicrosecond = 1e-6;
constexpr double kMaxRate = 1e15;  // GB/s
constexpr std::int64_t kMaxLogRanks = 1 << 20;

// The operation in "/path/all_reduce_perf".
std::string op_of_arguments(const JsonReader& reader) {
  if (!reader.has("args")) return "";
  for (const Json& word : reader.value("args")) {
    if (!word.is_string()) continue;
    const std::string text = word.get<std::string>();
    const std::size_t end = text.find("_perf");
    if (end == std::string::npos) continue;
    const std::size_t slash = text.rfind('/', end);
    const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
    return text.substr(begin, end - begin);
  }
  return "";
}

double time_of(const JsonReader& row) {
  const char* key = row.has("out_of_place") ? "out_of_place" : "in_place";
  return row.object(key).number("time", physical::kMessageTime) * kMicrosecond;
}

// The file has six digits after the decimal point.
void add_ratio(const JsonReader& times, BusRatio& ratio) {
  constexpr double kOff = 0.5e-6;
  for (const char* key : {"alg_bw", "bus_bw"})
    if (!times.has(key) || !times.value(key).is_number()) return;
  const double algbw = times.number("alg_bw", 0, kMaxRate), busbw = times.number("bus_bw", 0, kMaxRate);
  ratio.narrow(algbw, kOff + 1e-6 * algbw, busbw, kOff + 1e-6 * busbw);
}

}  // namespace

LogRun read_json_log(const JsonReader& reader) {
  LogRun run;
  run.op = op_of_arguments(reader);
  const JsonReader config = reader.object("config");
  run.place = reader.file();
  std::set<std::string> hosts;
  std::set<std::int64_t> numbers, groups;
  for (const JsonReader& device : config.objects("devices")) {
    const std::int64_t number = device.integer_or("rank", run.ranks, 0, kMaxLogRanks);
    run.last_rank = std::max(run.last_rank, static_cast<int>(number));
    run.rank_twice = !numbers.insert(number).second || run.rank_twice;
    groups.insert(device.integer_or("group", 0, 0, kMaxLogRanks));
    ++run.ranks;
    hosts.insert(device.text("hostname"));
    const std::string gpu = device.text_or("device_info", "");
    if (!gpu.empty() && std::ranges::find(run.gpus, gpu) == run.gpus.end()) run.gpus.push_back(gpu);
  }
  run.splits = static_cast<int>(groups.size());
  run.hosts = static_cast<int>(hosts.size());
  for (const JsonReader& row : reader.objects("results")) {
    const double bytes = row.number("size", physical::kMessage);
    if (bytes > 0) run.rows.push_back({bytes, time_of(row)});
    for (const char* kind : {"out_of_place", "in_place"})
      if (row.has(kind)) add_ratio(row.object(kind), run.ratio);
  }
  if (run.rows.empty()) reader.fail("results", "must hold a row with a size above 0");
  std::sort(run.rows.begin(), run.rows.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto same = [](const auto& a, const auto& b) { return a.bytes == b.bytes; };
  run.rows.erase(std::unique(run.rows.begin(), run.rows.end(), same), run.rows.end());
  return run;
}

}  // namespace rehearse::nccl
