#include <fmt/core.h>
#include <algorithm>

#include "export/traces.h"
#include "plan/comm_group.h"

namespace rehearse {

namespace {

bool is_copy(const std::string& name) {
  return name.starts_with("Memcpy");
}

Json group(const std::string& name, const std::string& what, const std::vector<int>& ranks) {
  return {{"pg_name", name},
          {"pg_desc", what},
          {"backend_config", "cuda:nccl"},
          {"pg_size", ranks.size()},
          {"ranks", ranks}};
}

// The groups of a rank: its pipeline, and the ranks that hold the same parameters. Experts may have replicas
// of their own.
Json groups_of(int rank, const Report& report) {
  const Plan& plan = report.plan;
  const CommGroups of(plan);
  Json groups = Json::array();
  if (plan.pp > 1) groups.push_back(group("pp", "pipeline", of.ranks(CommGroup::pipeline, rank)));
  const std::vector<int> sharing = of.ranks(CommGroup::shards, rank);
  if (sharing.size() > 1) groups.push_back(group("dp", "data parallel", sharing));
  const std::vector<int> experts = of.ranks(CommGroup::expert_shards, rank);
  if (report.model.experts && experts.size() > 1 && experts != sharing)
    groups.push_back(group("expert dp", "expert data parallel", experts));
  return groups;
}

class RankWriter {
 public:
  RankWriter(int rank, const Json& chrome, const Report& report)
      : rank_(rank), device_(rank % std::max(1, report.facts.gpus_per_node)) {
    for (const auto& [key, value] : chrome.items())
      if (key != "traceEvents") trace_[key] = value;
    const Json groups = groups_of(rank, report);
    Json& info = trace_["distributedInfo"];
    info["rank"] = rank;
    info["pg_count"] = groups.size();
    info["pg_config"] = groups;
    trace_["traceName"] = fmt::format("rank{}.json", rank);
    trace_["traceEvents"] = Json::array();
  }

  void take(Json event) {
    const std::string phase = event.value("ph", "");
    if (phase != "M" && phase != "C" && !(phase == "X" && event.value("cat", "") == "kernel")) return;
    event["pid"] = device_;
    if (phase == "X") complete(event);
    const bool named = phase == "M" && event.value("name", "") == "process_name";
    trace_["traceEvents"].push_back(std::move(event));
    if (named) label();
  }

  RankTrace done() && { return {rank_, std::move(trace_)}; }

 private:
  void complete(Json& event) {
    event["args"]["device"] = device_;
    event["args"]["correlation"] = ++correlation_;
    if (is_copy(event.value("name", ""))) event["cat"] = "gpu_memcpy";
  }

  void label() {
    trace_["traceEvents"].push_back({{"ph", "M"},
                                     {"name", "process_labels"},
                                     {"pid", device_},
                                     {"tid", 0},
                                     {"args", {{"labels", fmt::format("GPU {}", device_)}}}});
  }

  int rank_, device_;
  std::int64_t correlation_ = 0;
  Json trace_;
};

}  // namespace

std::string kineto_text(const RankTrace& rank) {
  // dump(0): one line a key, and a space after each colon.
  std::string text = "{\n\"distributedInfo\": " + rank.trace.at("distributedInfo").dump(0);
  for (const auto& [key, value] : rank.trace.items()) {
    if (key == "distributedInfo" || key == "traceEvents") continue;
    text += ",\n" + Json(key).dump() + ": " + value.dump();
  }
  text += ",\n\"traceEvents\": [";
  const char* before = "\n";
  for (const Json& event : rank.trace.at("traceEvents")) {
    text += before + event.dump();
    before = ",\n";
  }
  return text + "\n]}\n";
}

std::vector<RankTrace> kineto_traces(const Json& chrome, const Report& report) {
  std::vector<RankTrace> traces;
  std::map<int, RankWriter> writers;
  for (const Json& event : chrome.at("traceEvents")) {
    const int rank = event.value("pid", 0);
    const auto writer = writers.try_emplace(rank, rank, chrome, report).first;
    writer->second.take(event);
  }
  for (auto& [rank, writer] : writers) traces.push_back(std::move(writer).done());
  return traces;
}

}  // namespace rehearse
