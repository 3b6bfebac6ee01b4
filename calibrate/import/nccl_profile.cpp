#include "calibrate/import/nccl_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/data_path.h"
#include "base/percentile.h"
#include "base/text_file.h"
#include "calibrate/import/nccl_fit.h"
#include "calibrate/import/nccl_group.h"
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

std::string op_of_run(const LogRun& run, const LogImport& request) {
  require(!request.op.empty() || !run.op.empty(), run.place, "--op", "which operation ran");
  if (!request.op.empty() && !run.op.empty() && run.op != request.op)
    throw InputError({run.place, "--op", "the log is of another operation",
                      fmt::format("{} in the log, {} given", run.op, request.op), run.op});
  return request.op.empty() ? run.op : request.op;
}

Table table_of(const LogRun& run, const std::string& path, const LogImport& request,
               std::vector<std::string>& notes) {
  require(!request.cluster.empty(), path, "--cluster", "on which cluster it ran");
  Table table;
  table.file = file_name(path);
  table.cluster = request.cluster;
  table.op = op_of_run(run, request);
  table.collective = op_of(table.op, JsonReader(Json::object(), path));
  const Cluster cluster = read_cluster(request.cluster);
  const GroupSize size = size_of_group(run, table.op, {request.nodes, request.gpus_per_node}, cluster);
  table.nodes = size.nodes;
  table.gpus_per_node = size.gpus_per_node;
  table.rows = run.rows;
  if (!size.note.empty()) notes.push_back(fmt::format("note: {}: {}", run.place, size.note));
  if (const std::string other = other_gpu(run, cluster); !other.empty())
    notes.push_back(fmt::format("warning: {}: {}", run.place, other));
  return table;
}

// The difference between two runs of one group: the largest of the medians over each class of sizes.
double difference(const std::vector<Measured::Row>& a, const std::vector<Measured::Row>& b) {
  std::map<std::size_t, std::vector<double>> ratios;
  for (const Measured::Row& row : a) {
    for (const Measured::Row& other : b)
      if (other.bytes == row.bytes)
        ratios[size_class(row.bytes)].push_back(
            std::max(row.seconds / other.seconds, other.seconds / row.seconds));
  }
  double most = 1;
  for (auto& [size, of_class] : ratios) {
    std::ranges::sort(of_class);
    most = std::max(most, percentile(of_class, 0.5));
  }
  return most;
}

bool same_group(const Sample& a, const Sample& b) {
  return a.hardware == b.hardware && a.table.collective == b.table.collective &&
         a.group.nodes == b.group.nodes && a.group.members == b.group.members &&
         a.table.forced == b.table.forced;
}

// A median must not hide runs on a busy fabric, or on another set of links.
void drop_what_later_runs_contradict(std::vector<Sample>& samples, std::vector<std::string>& places,
                                     std::vector<std::string>& notes) {
  constexpr double kMuch = 1.5;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    for (std::size_t later = samples.size(); later-- > i + 1;) {
      if (!same_group(samples[i], samples[later])) continue;
      const double by = difference(samples[i].table.rows, samples[later].table.rows);
      if (by < kMuch) break;
      notes.push_back(fmt::format(
          "warning: {} and {} are runs of {} on the same group, but differ by {:.3g}x: the last, {}, is "
          "taken; import the other by itself if it is the right one",
          places[i], places[later], samples[i].table.op, by, places[later]));
      samples.erase(samples.begin() + static_cast<std::ptrdiff_t>(i));
      places.erase(places.begin() + static_cast<std::ptrdiff_t>(i));
      --i;
      break;
    }
  }
}

// A profile with collectives only.
Json empty_profile(const Cluster& cluster) {
  return {{"schema", kProfileSchema},
          {"name", ""},
          {"gpu", profile_gpu_json(cluster.gpu)},
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

// The name of a system in the profile: its own, or one with a number where the name is taken.
std::string keep_system(const KnownSystem& system, Json& kept) {
  KnownSystem named = system;
  for (int number = 2;; ++number) {
    const Json entry = to_json(named);
    const auto other = std::ranges::find_if(kept, [&](const Json& old) { return old.at("name") == named.name; });
    const bool is_new = other == kept.end();
    if (!is_new && *other != entry) {
      named.name = fmt::format("{}-{}", system.name, number);
      continue;
    }
    if (is_new) kept.push_back(entry);
    return named.name;
  }
}

void merge(Json& profile, const std::vector<Measured>& measured, const std::vector<KnownSystem>& systems) {
  Json& collectives = profile["collectives"];
  if (collectives.is_null()) collectives = {{"model", kDefaultModel}};
  // Create both first: adding a member to an object moves its values.
  for (const char* list : {"systems", "measured"})
    if (!collectives.contains(list)) collectives[list] = Json::array();
  Json& described = collectives["systems"];
  Json& kept = collectives["measured"];
  for (const Measured& each : measured) {
    Json entry = to_json(each, systems);
    entry["hardware"] = keep_system(systems[each.system], described);
    Json rest = Json::array();
    for (const Json& old : kept) {
      if (!same_system(old, entry)) rest.push_back(old);
    }
    rest.push_back(entry);
    kept = rest;
  }
}

std::vector<LoggedTable> tables_of(const std::string& path, const LogImport& request,
                                   std::vector<std::string>& notes) {
  if (is_log(path)) return tables_of_log(path, request, notes);
  return {{read_table(path), path}};
}

}  // namespace

bool is_log(const std::string& path) {
  const std::string text = read_text_file(path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return true;
  const Json json = read_json_file(path);
  return json.is_object() && json.contains("results") && json.contains("config");
}

std::vector<LoggedTable> tables_of_log(const std::string& path, const LogImport& request,
                                       std::vector<std::string>& notes) {
  std::vector<LoggedTable> tables;
  for (const LogRun& run : read_log(path)) {
    tables.push_back({table_of(run, path, request, notes), run.place});
    notes.insert(notes.end(), run.notes.begin(), run.notes.end());
    if (run.wrong_values)
      notes.push_back(fmt::format("{}: {} reported values out of bounds; its times are taken", path,
                                  tables.back().table.op));
  }
  return tables;
}

ImportedProfile import_logs(const LogImport& request) {
  ImportedProfile imported;
  std::vector<Sample> samples;
  std::vector<std::string> places;
  for (const std::string& path : request.files) {
    for (auto& [table, place] : tables_of(path, request, imported.notes)) {
      Cluster cluster = read_cluster(table.cluster);
      const GroupShape group = group_of(table, cluster);
      imported.notes.push_back(fmt::format("{}: {} rows of {} over {} GPUs on {} node{} of {}", path,
                                           table.rows.size(), table.op, group.members, group.nodes,
                                           group.nodes == 1 ? "" : "s", table.cluster));
      const std::string name = cluster.name;
      samples.push_back({std::move(table), std::move(cluster), group, {}, name});
      places.push_back(place);
    }
  }
  drop_what_later_runs_contradict(samples, places, imported.notes);
  std::vector<const Sample*> all;
  for (const Sample& sample : samples) all.push_back(&sample);
  const Cluster& cluster = samples.front().cluster;
  const std::string into = request.into.empty() ? cluster.profile : request.into;
  imported.profile = base_profile(into, cluster);
  imported.profile["name"] = request.name.empty() ? cluster.name : request.name;
  std::vector<KnownSystem> systems;
  const std::vector<Measured> measured = measured_of(all, How::measured, systems);
  merge(imported.profile, measured, systems);
  for (const Sample& sample : samples) {
    imported.profile["sources"].push_back({{"title", sample.table.file},
                                           {"license", "the user's own"},
                                           {"note", "nccl-tests log, out-of-place times"}});
  }
  parse_profile(JsonReader(imported.profile, "the profile made of the logs"));
  return imported;
}

}  // namespace rehearse::nccl
