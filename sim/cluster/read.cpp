#include <fmt/core.h>

#include "base/data_path.h"
#include "base/json_kind.h"
#include "base/text_file.h"
#include "cluster/cluster.h"
#include "cluster/cluster_json.h"
#include "cluster/read_changed.h"
#include "cluster/read_links.h"

namespace rehearse {

namespace {

constexpr const char* kFolder = "topologies";
constexpr const char* kSchema = "rehearse.cluster/1";
constexpr int kLikeChain = 4;

// Above any hardware, so that no product of them overflows.
constexpr int kGpusPerNode = 1 << 10;
constexpr int kMultiprocessors = 1 << 14;
constexpr double kComputeCapability = 100;
constexpr int kNodes = 1 << 20;
constexpr double kMinEfficiency = 1e-6;

// Whether an optional key is present. Registered even when absent, so that a misspelling gets the right
// suggestion.
bool offers(const JsonReader& reader, const std::string& key) {
  const bool present = reader.has(key);
  if (!present) static_cast<void>(reader.text_or(key, ""));
  return present;
}

Port read_port(const JsonReader& reader) {
  Port port;
  port.bandwidth = reader.quantity("bandwidth", physical::kBandwidth);
  port.latency = reader.quantity("latency", physical::kLatency);
  return port;
}

Gpu read_gpu(const JsonReader& reader) {
  Gpu gpu;
  gpu.name = reader.text("name");
  if (offers(reader, "multiprocessors"))
    gpu.multiprocessors = static_cast<int>(reader.integer("multiprocessors", 1, kMultiprocessors));
  if (offers(reader, "compute_capability"))
    gpu.compute_capability = reader.number("compute_capability", 1, kComputeCapability);
  gpu.memory_bytes = reader.quantity("memory", physical::kMemory);
  gpu.memory_bandwidth = reader.quantity("memory_bandwidth", physical::kBandwidth);
  const JsonReader peak = reader.object("peak");
  for (const char* precision : {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}) {
    if (offers(peak, precision)) gpu.peak_flops[precision] = peak.quantity(precision, physical::kFlops);
  }
  peak.reject_unknown();
  if (gpu.peak_flops.empty()) reader.fail("peak", "must name the peak of one precision at least");
  reader.reject_unknown();
  return gpu;
}

void read_nics(const JsonReader& reader, Node& node) {
  node.nics = static_cast<int>(reader.integer("count", 1, kGpusPerNode));
  node.nic = read_port(reader);
  node.nic_kind = reader.text("kind");
  NicLimits& limits = node.nic_limits;
  limits = read_nic_limits(node.nic_kind, node.nic.bandwidth);
  limits.efficiency = reader.number_or("efficiency", limits.efficiency, kMinEfficiency, 1);
  limits.messages_per_s = reader.number_or("messages_per_s", limits.messages_per_s, physical::kMessageRate);
  if (offers(reader, "of_gpu")) node.nic_of_gpu = read_nic_of_gpu(reader, node);
  reader.reject_unknown();
}

Host read_host(const JsonReader& reader) {
  Host host;
  const JsonReader link = reader.object("link");
  host.link = read_port(link);
  link.reject_unknown();
  host.adam_parameters_per_s = reader.number("adam_parameters_per_s", physical::kEvents);
  reader.text("source");
  reader.reject_unknown();
  return host;
}

Node read_node(const JsonReader& reader) {
  Node node;
  node.gpus = static_cast<int>(reader.integer("gpus", 1, kGpusPerNode));
  const JsonReader link = reader.object("gpu_link");
  node.gpu_link = read_port(link);
  node.gpu_link_kind = link.text("kind");
  link.reject_unknown();
  if (offers(reader, "nics")) read_nics(reader.object("nics"), node);
  if (offers(reader, "wiring")) node.wiring = read_wiring(reader, node);
  if (offers(reader, "host")) node.host = read_host(reader.object("host"));
  reader.reject_unknown();
  return node;
}

void require_schema(const JsonReader& reader) {
  const std::string schema = reader.text("schema");
  if (schema != kSchema) {
    reader.fail("schema", fmt::format("must be \"{}\"", kSchema), fmt::format("found \"{}\"", schema),
                kSchema);
  }
}

// A cluster may be "like" another one and state only the differences, as a JSON merge patch (RFC 7396). All
// sources are kept.
JsonReader open_merged(const std::string& file, int deepest = kLikeChain) {
  const JsonReader own = JsonReader::open(file);
  require_kind(own.json(), file, JsonKind::cluster);
  require_schema(own);
  const std::string source = own.text("source");
  const std::string like = own.text_or("like", "");
  if (like.empty()) return own;
  if (deepest == 0) own.fail("like", fmt::format("may lead through {} clusters at most", kLikeChain), like);
  Json merged = open_merged(find_data_file("cluster", kFolder, like), deepest - 1).json();
  const std::string rest = merged.at("source").get<std::string>();
  merged.merge_patch(own.json());
  merged["source"] = fmt::format("{}; the rest as {}: {}", source, like, rest);
  merged.erase("like");
  return JsonReader(merged, file);
}

JsonReader changed(const JsonReader& whole, const Json& changes, const std::string& file) {
  if (changes.empty()) return whole;
  Json merged = whole.json();
  merged.merge_patch(changes);
  return JsonReader(merged, file + " with cluster_changes");
}

}  // namespace

Cluster read_cluster(const std::string& name_or_path) {
  return read_cluster_changed(name_or_path, Json::object());
}

Cluster read_cluster_changed(const std::string& name_or_path, const Json& changes) {
  const std::string file = find_data_file("cluster", kFolder, name_or_path);
  return parse_cluster(changed(open_merged(file), changes, file), stem_of(file));
}

Cluster parse_cluster(const JsonReader& reader, const std::string& name) {
  require_schema(reader);
  Cluster cluster;
  cluster.name = name;
  cluster.source = reader.text("source");
  cluster.gpu = read_gpu(reader.object("gpu"));
  const JsonReader node = reader.object("node");
  cluster.node = read_node(node);
  cluster.max_nodes = static_cast<int>(reader.integer_or("max_nodes", 0, 0, kNodes));
  cluster.fabric = read_fabric(reader, cluster);
  cluster.profile = reader.text_or("profile", "");
  cluster.nccl = read_nccl_facts(reader, cluster.node.gpus);
  reader.reject_unknown();
  if (cluster.node.nics == 0 && cluster.max_nodes != 1) {
    node.fail("nics", "is required unless max_nodes is 1", fmt::format("max_nodes = {}", cluster.max_nodes),
              "max_nodes = 1");
  }
  return cluster;
}

std::vector<std::string> cluster_names() {
  return data_names(kFolder);
}

}  // namespace rehearse
