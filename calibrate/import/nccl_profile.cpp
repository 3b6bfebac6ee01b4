#include "calibrate/import/nccl_profile.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/data_path.h"
#include "calibrate/import/nccl_fit.h"
#include "calibrate/import/nccl_log.h"
#include "cost/nccl/read_model.h"
#include "cost/read_profile.h"

namespace rehearse::nccl {

namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

void require(bool known, const std::string& file, const std::string& flag, const std::string& what) {
  if (!known)
    throw InputError({file, flag, fmt::format("the log does not say {}; give {}", what, flag), "", ""});
}

Table table_of(const LogRun& run, const std::string& path, const LogImport& request) {
  Table table;
  table.file = file_name(path);
  table.cluster = request.cluster;
  table.op = request.op.empty() ? run.op : request.op;
  require(!table.op.empty(), path, "--op", "which operation ran");
  table.collective = op_of(table.op, JsonReader(Json::object(), path));
  table.nodes = request.nodes > 0 ? request.nodes : run.hosts;
  require(table.nodes > 0, path, "--nodes", "on how many nodes it ran");
  table.gpus_per_node = request.gpus_per_node;
  if (table.gpus_per_node == 0 && run.ranks > 0 && run.ranks % table.nodes == 0)
    table.gpus_per_node = run.ranks / table.nodes;
  require(table.gpus_per_node > 0, path, "--gpus-per-node", "how many GPUs of each node took part");
  table.rows = run.rows;
  return table;
}

bool is_table(const std::string& path) {
  if (std::filesystem::path(path).extension() != ".json") return false;
  const Json json = read_json_file(path);
  return json.is_object() && json.contains("rows") && json.contains("cluster");
}

std::vector<Table> tables_of(const std::string& path, const LogImport& request,
                             std::vector<std::string>& notes) {
  if (is_table(path)) return {read_table(path)};
  std::vector<Table> tables;
  for (const LogRun& run : read_log(path)) {
    tables.push_back(table_of(run, path, request));
    if (run.wrong_values)
      notes.push_back(
          fmt::format("{}: {} reported values out of bounds; its times are taken", path, tables.back().op));
  }
  return tables;
}

// A profile that knows collectives alone.
Json empty_profile(const Cluster& cluster) {
  Json peaks = Json::object();
  for (const auto& [precision, flops] : cluster.gpu.peak_flops) peaks[precision] = flops;
  return {{"schema", kProfileSchema},
          {"name", ""},
          {"gpu",
           {{"name", cluster.gpu.name},
            {"memory_bandwidth", cluster.gpu.memory_bandwidth},
            {"peak_flops", peaks}}},
          {"how", "measured"},
          {"sources", Json::array()},
          {"launch", {{"seconds", 0}, {"source", "not measured"}}},
          {"collectives", {{"model", kDefaultModel}, {"measured", Json::array()}}},
          {"links", Json::array()},
          {"stream", Json::object()},
          {"gemm", Json::object()}};
}

Json base_profile(const std::string& into, const Cluster& cluster) {
  if (into.empty()) return empty_profile(cluster);
  const JsonReader reader = JsonReader::open(find_data_file("profile", "calibrate/profiles", into));
  parse_profile(reader);
  return reader.json();
}

bool same_system(const Json& a, const Json& b) {
  const auto at = [](const Json& json, const char* key) {
    return json.contains(key) ? json.at(key) : Json();
  };
  for (const char* key : {"hardware", "op", "nodes", "members", "algorithm"}) {
    if (at(a, key) != at(b, key)) return false;
  }
  return true;
}

void merge(Json& profile, const std::vector<Measured>& measured) {
  if (!profile.contains("collectives"))
    profile["collectives"] = {{"model", kDefaultModel}, {"measured", Json::array()}};
  Json& kept = profile["collectives"]["measured"];
  for (const Measured& each : measured) {
    const Json entry = to_json(each);
    Json rest = Json::array();
    for (const Json& old : kept) {
      if (!same_system(old, entry)) rest.push_back(old);
    }
    rest.push_back(entry);
    kept = rest;
  }
}

}  // namespace

ImportedProfile import_logs(const LogImport& request) {
  ImportedProfile imported;
  std::vector<Sample> samples;
  for (const std::string& path : request.files) {
    for (Table& table : tables_of(path, request, imported.notes)) {
      if (table.cluster.empty()) require(false, path, "--cluster", "on which cluster it ran");
      Cluster cluster = read_cluster(table.cluster);
      const GroupShape group = group_of(table, cluster);
      imported.notes.push_back(fmt::format("{}: {} rows of {} over {} GPUs on {} node{} of {}", path,
                                           table.rows.size(), table.op, group.members, group.nodes,
                                           group.nodes == 1 ? "" : "s", table.cluster));
      samples.push_back({std::move(table), std::move(cluster), group, {}});
    }
  }
  std::vector<const Sample*> all;
  for (const Sample& sample : samples) all.push_back(&sample);
  const Cluster& cluster = samples.front().cluster;
  const std::string into = request.into.empty() ? cluster.profile : request.into;
  imported.profile = base_profile(into, cluster);
  imported.profile["name"] = request.name.empty() ? cluster.name : request.name;
  merge(imported.profile, measured_of(all, How::measured));
  for (const Sample& sample : samples) {
    imported.profile["sources"].push_back({{"title", sample.table.file},
                                           {"license", "the user's own"},
                                           {"note", "nccl-tests log, out-of-place times"}});
  }
  parse_profile(JsonReader(imported.profile, "the profile made of the logs"));
  return imported;
}

}  // namespace rehearse::nccl
