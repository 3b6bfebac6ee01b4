#include "cluster/nccl_facts.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "base/data_path.h"
#include "base/json_reader.h"

namespace rehearse {

namespace {

constexpr int kLikeChain = 8;
constexpr int kSmMost = 999;
constexpr Bounds kRings{Dimension::one, 0.01, 64};

std::vector<double> read_rings(const JsonReader& reader, int gpus) {
  const std::vector<double> rings = reader.numbers("rings", kRings);
  if (static_cast<int>(rings.size()) != gpus - 1)
    reader.fail("rings", "must hold a number for 2, 3, ... GPUs of the node",
                "found " + reader.value("rings").dump());
  return rings;
}

void read_island(const JsonReader& reader, int gpus, NcclFacts& facts) {
  facts.island_gpus = static_cast<int>(reader.integer("gpus", 2, gpus < 2 ? 2 : gpus));
  facts.island_kind = reader.text("kind");
  facts.island_bandwidth = reader.quantity("bandwidth", physical::kBandwidth);
  reader.reject_unknown();
}

bool has_only(const Json& json, std::initializer_list<std::string_view> keys) {
  return std::ranges::all_of(json.items(), [keys](const auto& item) {
    return item.key().starts_with("_") || std::ranges::find(keys, item.key()) != keys.end();
  });
}

// Messages do not hang on how much memory a GPU has.
bool gpu_says_the_same(const Json& json) {
  return has_only(json.value("gpu", Json::object()), {"name", "memory"});
}

bool says_the_same(const Json& json) {
  return has_only(json, {"schema", "source", "like", "gpu"}) && gpu_says_the_same(json);
}

// Of what messages between GPUs of a node meet.
bool says_the_same_within_a_node(const Json& json) {
  return has_only(json,
                  {"schema", "source", "like", "fabric", "max_nodes", "profile", "gpu", "node", "nccl"}) &&
         gpu_says_the_same(json) && has_only(json.value("node", Json::object()), {"nics", "host"}) &&
         has_only(json.value("nccl", Json::object()), {"assumed_nics", "degraded"});
}

// The first file along "like" that says another thing than the one which it is like.
std::string origin(const std::string& file, bool (*same)(const Json&)) {
  std::string at = file;
  for (int i = 0; i < kLikeChain; ++i) {
    const Json json = read_json_file(at);
    if (!json.contains("like") || !same(json)) break;
    at = find_data_file("cluster", "topologies", json.at("like").get<std::string>());
  }
  return std::filesystem::path(at).stem().string();
}

}  // namespace

NcclFacts read_nccl_facts(const JsonReader& cluster, int gpus) {
  NcclFacts facts;
  if (!cluster.has("nccl")) return facts;
  const JsonReader reader = cluster.object("nccl");
  facts.sm = static_cast<int>(reader.integer_or("sm", 0, 0, kSmMost));
  facts.host_gpus = static_cast<int>(reader.integer_or("host_gpus", 0, 0, gpus));
  facts.assumed_nics = reader.boolean_or("assumed_nics", false);
  facts.degraded = reader.boolean_or("degraded", false);
  if (reader.has("rings")) facts.rings = read_rings(reader, gpus);
  if (reader.has("island")) read_island(reader.object("island"), gpus, facts);
  reader.reject_unknown();
  return facts;
}

Hardware hardware_of(const std::string& file) {
  return {origin(file, says_the_same), origin(file, says_the_same_within_a_node)};
}

}  // namespace rehearse
