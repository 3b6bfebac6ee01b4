// docs/cluster.schema.json and the reader of clusters know the same keys.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <set>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "cluster/read_changed.h"
#include "json_schema.h"

namespace rehearse {
namespace {

// Keys that no shipped cluster has.
const char* const kRare = R"json({
  "schema": "rehearse.cluster/1", "source": "a test", "profile": "h100-sxm", "max_nodes": 4, "fabric": "fast",
  "gpu": {"name": "G", "memory": "80GB", "memory_bandwidth": "3TB/s", "multiprocessors": 132,
          "compute_capability": 9.0, "peak": {"fp32": "60TFLOPS", "tf32": "400TFLOPS", "fp16": "900TFLOPS",
          "bf16": "900TFLOPS", "fp8": "1800TFLOPS", "fp4": "3600TFLOPS"}},
  "node": {"gpus": 4, "gpu_link": {"kind": "nvswitch", "bandwidth": "450GB/s", "latency": "1us"},
           "nics": {"count": 2, "kind": "infiniband", "bandwidth": "400Gbps", "latency": "3us",
                    "efficiency": 0.9, "messages_per_s": 1e8, "of_gpu": [0, 0, 1, 1]},
           "wiring": [{"among": ["gpu0", "gpu1", "gpu2", "gpu3"], "kind": "nvlink", "bandwidth": "450GB/s"},
                      {"hub": "cpu", "to": ["gpu0", "gpu1", "gpu2", "gpu3", "nic0", "nic1"], "kind": "pcie",
                       "bandwidth": "50GB/s"}],
           "host": {"link": {"bandwidth": "50GB/s", "latency": "2us"}, "adam_parameters_per_s": 1e9,
                    "source": "a test"}},
  "nccl": {"sm": 90, "host_gpus": 4, "assumed_nics": true, "degraded": true, "rings": [1, 2, 3],
           "island": {"gpus": 2, "kind": "nvlink", "bandwidth": "50GB/s"}}
})json";

const char* const kTree =
    R"json({"fabric": {"kind": "fat-tree", "rails": true, "oversubscription": 2, "note": "n",
  "levels": [{"name": "leaf", "nodes": 2, "oversubscription": 1}]}})json";
const char* const kDragonfly = R"json({"fabric": {"kind": "dragonfly", "routing": "adaptive",
  "levels": [{"name": "group", "nodes": 2}]}})json";
const char* const kTorus =
    R"json({"fabric": {"kind": "torus", "extents": [2, 2], "link_bandwidth": "50GB/s"}})json";

std::vector<Json> whole_clusters() {
  std::vector<Json> all;
  for (const char* fabric : {"{}", kTree, kDragonfly, kTorus}) {
    Json cluster = Json::parse(kRare);
    cluster.merge_patch(Json::parse(fabric));
    all.push_back(std::move(cluster));
  }
  return all;
}

bool reads(const Json& cluster) {
  try {
    parse_cluster(JsonReader(cluster, "test.json"), "test");
    return true;
  } catch (const InputError&) {
    return false;
  }
}

// Every place of an object or of a value, array elements aside but for those of objects.
void each_place(const Json& json, const Json::json_pointer& at,
                const std::function<void(const Json::json_pointer&)>& visit) {
  visit(at);
  if (json.is_object())
    for (const auto& [key, value] : json.items()) each_place(value, at / key, visit);
  if (json.is_array() && !json.empty() && json.front().is_object())
    for (std::size_t i = 0; i < json.size(); ++i) each_place(json[i], at / i, visit);
}

// The keys that the schema names, as pointers into a cluster.
void each_property(const nlohmann::json& schema, const std::string& at, std::set<std::string>& found) {
  if (schema.contains("anyOf"))
    for (const auto& each : schema.at("anyOf")) each_property(each, at, found);
  if (schema.contains("items")) each_property(schema.at("items"), at + "/0", found);
  if (!schema.contains("properties")) return;
  for (const auto& [key, value] : schema.at("properties").items()) {
    found.insert(at + "/" + key);
    each_property(value, at + "/" + key, found);
  }
}

TEST(ClusterSchema, AllowsEveryShippedCluster) {
  const JsonSchema schema("cluster.schema.json");
  for (const std::string& name : cluster_names()) {
    const Json file = read_json_file(SOURCE_DIR "/topologies/" + name + ".json");
    EXPECT_EQ(schema.faults_of(file), "") << name;
  }
}

TEST(ClusterSchema, NamesKeysThatTheReaderReads) {
  const JsonSchema schema("cluster.schema.json");
  std::set<std::string> named, seen;
  each_property(schema.json(), "", named);
  named.erase("/like");  // read where files are opened, and by every shipped cluster that has it
  for (const Json& cluster : whole_clusters()) {
    ASSERT_TRUE(reads(cluster)) << cluster.dump();
    EXPECT_EQ(schema.faults_of(cluster), "");
    each_place(cluster, Json::json_pointer(), [&](const Json::json_pointer& place) {
      seen.insert(std::regex_replace(place.to_string(), std::regex("/[0-9]+"), "/0"));  // of any entry
      if (place.empty() || place.to_string() == "/fabric/note") return;
      Json wrong = cluster;
      wrong[place] = Json::array({Json::array()});  // no key holds a list of lists
      EXPECT_FALSE(reads(wrong)) << place.to_string() << " is not read";
      EXPECT_NE(schema.faults_of(wrong), "") << place.to_string();
    });
  }
  for (const std::string& key : named)
    EXPECT_TRUE(seen.contains(key)) << key << " is in no cluster of this test";
}

TEST(ClusterSchema, RefusesTheUnknownKeysThatTheReaderRefuses) {
  const JsonSchema schema("cluster.schema.json");
  for (const Json& cluster : whole_clusters())
    each_place(cluster, Json::json_pointer(), [&](const Json::json_pointer& place) {
      if (!cluster[place].is_object()) return;
      Json unknown = cluster;
      unknown[place]["bandwith"] = "1GB/s";
      EXPECT_FALSE(reads(unknown)) << place.to_string();
      EXPECT_NE(schema.faults_of(unknown), "") << place.to_string();
    });
}

}  // namespace
}  // namespace rehearse
