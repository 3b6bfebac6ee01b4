#include "calibrate/import/nccl_json_log.h"

#include <algorithm>
#include <set>

namespace rehearse::nccl {

namespace {

constexpr double kMicrosecond = 1e-6, kLongest_us = 1e12, kMostBytes = 1e15;

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
  return row.object(key).number("time", 1e-3, kLongest_us) * kMicrosecond;
}

}  // namespace

LogRun read_json_log(const JsonReader& reader) {
  LogRun run;
  run.op = op_of_arguments(reader);
  const JsonReader config = reader.object("config");
  std::set<std::string> hosts;
  for (const JsonReader& device : config.objects("devices")) {
    ++run.ranks;
    hosts.insert(device.text("hostname"));
  }
  run.hosts = static_cast<int>(hosts.size());
  for (const JsonReader& row : reader.objects("results")) {
    const double bytes = row.number("size", 0, kMostBytes);
    if (bytes > 0) run.rows.push_back({bytes, time_of(row)});
  }
  if (run.rows.empty()) reader.fail("results", "must hold a row with a size above 0");
  std::sort(run.rows.begin(), run.rows.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto same = [](const auto& a, const auto& b) { return a.bytes == b.bytes; };
  run.rows.erase(std::unique(run.rows.begin(), run.rows.end(), same), run.rows.end());
  return run;
}

}  // namespace rehearse::nccl
