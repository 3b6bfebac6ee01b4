#include "cluster/import.h"

#include <fmt/core.h>

#include "base/json_reader.h"
#include "base/text_file.h"
#include "cluster/imported_node.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxBytes = 16'000'000;

std::string rate(double bytes_per_s) {
  return fmt::format("{:g}GB/s", bytes_per_s * 1e-9);
}

// '\0' for a text without letters.
char first_letter(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? '\0' : text[begin];
}

// A NIC's rate where the file has it; else `like`'s rate applies.
Json nics_json(const ImportedNode& imported) {
  const Node& node = imported.cluster.node;
  if (node.nics == 0) return nullptr;
  Json nics = {{"count", node.nics}, {"of_gpu", node.nic_of_gpu}};
  if (imported.tells_nic_rate) nics["bandwidth"] = rate(node.nic.bandwidth);
  return nics;
}

Json node_json(const ImportedNode& imported) {
  const Node& node = imported.cluster.node;
  const Json link = {{"kind", node.gpu_link_kind}, {"bandwidth", rate(node.gpu_link.bandwidth)}};
  if (imported.part_of_domain) return {{"gpu_link", link}};
  Json wiring = Json::array();
  for (const NodeLink& each : node.wiring)
    wiring.push_back(
        {{"among", {each.from, each.to}}, {"kind", each.kind}, {"bandwidth", rate(each.bandwidth)}});
  return {{"gpus", node.gpus}, {"gpu_link", link}, {"nics", nics_json(imported)}, {"wiring", wiring}};
}

// Rings are those of the whole mesh of `like`, islands those of its bridges; they are invalid for other
// wirings.
Json nccl_json(const ImportedNode& imported, const Cluster& like) {
  const NcclFacts& nccl = imported.cluster.nccl;
  Json changed = Json::object();
  if (!like.nccl.rings.empty() && nccl.rings.empty()) changed["rings"] = nullptr;
  if (nccl.island_gpus > 0) {
    changed["island"] = {
        {"gpus", nccl.island_gpus}, {"kind", nccl.island_kind}, {"bandwidth", rate(nccl.island_bandwidth)}};
  } else if (like.nccl.island_gpus > 0) {
    changed["island"] = nullptr;
  }
  return changed;
}

}  // namespace

// A pipe has no file ending, so its first letter decides: clusters are JSON objects.
bool is_topology_dump(const std::string& path) {
  if (!is_stream(path)) return path.ends_with(".xml") || path.ends_with(".txt");
  return first_letter(read_text_file(path, kMaxBytes)) != '{';
}

ImportedNode import_topology(const std::string& path, const Cluster* like) {
  const std::string text = read_text_file(path, kMaxBytes);
  const bool is_nccl = is_stream(path) ? first_letter(text) == '<' : path.ends_with(".xml");
  ImportedNode imported = is_nccl ? import_nccl(text, path) : import_smi(text, path, like);
  imported.cluster.name = stem_of(path);
  imported.cluster.max_nodes = 1;
  if (like != nullptr) complete(imported, *like);
  return imported;
}

std::string write_imported(const ImportedNode& imported, const std::string& like_name, const Cluster& like) {
  Json json = {{"schema", "rehearse.cluster/1"},
               {"like", like_name},
               {"source", imported.cluster.source},
               {"node", node_json(imported)}};
  if (const Json nccl = nccl_json(imported, like); !nccl.empty()) json["nccl"] = nccl;
  if (imported.cluster.max_nodes != like.max_nodes) json["max_nodes"] = imported.cluster.max_nodes;
  return json.dump(2) + "\n";
}

}  // namespace rehearse
