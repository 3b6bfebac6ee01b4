#include "calibrate/import/hardware.h"

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <string_view>

#include "base/data_path.h"
#include "base/json_reader.h"

namespace rehearse::nccl {

namespace {

constexpr int kLikeChain = 8;

bool has_only(const Json& json, std::initializer_list<std::string_view> keys) {
  return std::ranges::all_of(json.items(), [keys](const auto& item) {
    return item.key().starts_with("_") || std::ranges::find(keys, item.key()) != keys.end();
  });
}

// Times of messages do not depend on a GPU's memory size.
bool gpu_says_the_same(const Json& json) {
  return has_only(json.value("gpu", Json::object()), {"name", "memory"});
}

bool says_the_same(const Json& json) {
  return has_only(json, {"schema", "source", "like", "gpu"}) && gpu_says_the_same(json);
}

// Whether the properties that matter for messages within a node are the same.
bool says_the_same_within_a_node(const Json& json) {
  return has_only(json,
                  {"schema", "source", "like", "fabric", "max_nodes", "profile", "gpu", "node", "nccl"}) &&
         gpu_says_the_same(json) && has_only(json.value("node", Json::object()), {"nics", "host"}) &&
         has_only(json.value("nccl", Json::object()), {"assumed_nics", "degraded"});
}

// The first file along "like" that differs from the file it is like.
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

Hardware hardware_of(const std::string& cluster) {
  const std::string file = find_data_file("cluster", "topologies", cluster);
  return {origin(file, says_the_same), origin(file, says_the_same_within_a_node)};
}

}  // namespace rehearse::nccl
