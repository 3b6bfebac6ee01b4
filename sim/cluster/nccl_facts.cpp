#include "cluster/nccl_facts.h"

#include <filesystem>

#include "base/data_path.h"
#include "base/json_reader.h"

namespace rehearse {

namespace {

constexpr int kLikeChain = 8;
constexpr int kSmMost = 999;
constexpr double kRingsMost = 64;

std::vector<double> read_rings(const JsonReader& reader, int gpus) {
  std::vector<double> rings;
  const Json& list = reader.value("rings");
  const bool fits = list.is_array() && static_cast<int>(list.size()) == gpus - 1;
  if (!fits)
    reader.fail("rings", "must hold a number for 2, 3, ... GPUs of the node", "found " + list.dump());
  for (const Json& each : list) {
    if (!each.is_number() || each.get<double>() <= 0 || each.get<double>() > kRingsMost)
      reader.fail("rings", "must hold numbers above 0 and at most 64", "found " + each.dump());
    rings.push_back(each.get<double>());
  }
  return rings;
}

void read_island(const JsonReader& reader, int gpus, NcclFacts& facts) {
  facts.island_gpus = static_cast<int>(reader.integer("gpus", 2, gpus < 2 ? 2 : gpus));
  facts.island_kind = reader.text("kind");
  facts.island_bandwidth = reader.quantity("bandwidth", Dimension::bytes_per_second);
  if (!(facts.island_bandwidth > 0)) reader.fail("bandwidth", "must be above 0");
  reader.reject_unknown();
}

bool says_the_same(const Json& json) {
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    if (key != "schema" && key != "source" && key != "like" && !key.starts_with("_")) return false;
  }
  return json.contains("like");
}

}  // namespace

NcclFacts read_nccl_facts(const JsonReader& cluster, int gpus) {
  NcclFacts facts;
  if (!cluster.has("nccl")) return facts;
  const JsonReader reader = cluster.object("nccl");
  facts.sm = static_cast<int>(reader.integer_or("sm", 0, 0, kSmMost));
  facts.host_gpus = static_cast<int>(reader.integer_or("host_gpus", 0, 0, gpus));
  facts.assumed_nics = reader.boolean_or("assumed_nics", false);
  if (reader.has("rings")) facts.rings = read_rings(reader, gpus);
  if (reader.has("island")) read_island(reader.object("island"), gpus, facts);
  reader.reject_unknown();
  return facts;
}

std::string hardware_name(const std::string& file) {
  std::string at = file;
  for (int i = 0; i < kLikeChain; ++i) {
    const Json json = read_json_file(at);
    if (!says_the_same(json)) break;
    at = find_data_file("cluster", "topologies", json.at("like").get<std::string>());
  }
  return std::filesystem::path(at).stem().string();
}

}  // namespace rehearse
