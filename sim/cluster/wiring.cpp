#include "cluster/wiring.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/graph/strong_components.hpp>
#include <charconv>
#include <set>

#include "cluster/cluster.h"
#include "cluster/graph.h"

namespace rehearse {

namespace {

// The number after `word`, or -1 when the name is not this word and a number.
int index_of(const std::string& name, const std::string& word) {
  if (!name.starts_with(word) || name.size() == word.size()) return -1;
  int index = -1;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + word.size(), end, index);
  return parsed.ec == std::errc() && parsed.ptr == end ? index : -1;
}

bool names_what_is_there(const std::string& end, const Node& node) {
  return (!is_gpu(end) || index_of(end, "gpu") < node.gpus) &&
         (!is_nic(end) || index_of(end, "nic") < node.nics);
}

std::vector<std::string> unjoined_gpus(const Node& node) {
  const LinkGraph graph = make_node_graph(node);
  std::vector<std::size_t> part(boost::num_vertices(graph));
  boost::strong_components(graph, part.data());
  std::vector<std::string> broken;
  for (std::size_t gpu = 1; gpu < static_cast<std::size_t>(node.gpus); ++gpu) {
    if (part[gpu] != part[0]) broken.push_back(fmt::format("must join gpu0 and gpu{}", gpu));
  }
  return broken;
}

}  // namespace

bool is_gpu(const std::string& name) {
  return index_of(name, "gpu") >= 0;
}

bool is_nic(const std::string& name) {
  return index_of(name, "nic") >= 0;
}

std::vector<NodeLink> links_of(const Node& node) {
  if (!node.wiring.empty()) return node.wiring;
  std::vector<NodeLink> links;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const std::string name = fmt::format("gpu{}", gpu);
    links.push_back({name, node.gpu_link_kind, node.gpu_link_kind, node.gpu_link.bandwidth});
    const int own = node.nics / std::max(1, node.gpus);
    if (own < 2 && node.nics > 0) {
      const int nic = node.nic_of_gpu.empty() ? gpu * node.nics / node.gpus
                                              : node.nic_of_gpu[static_cast<std::size_t>(gpu)];
      links.push_back({name, fmt::format("nic{}", nic), node.nic_kind, node.nic.bandwidth});
    }
    for (int nic = gpu * own; own >= 2 && nic < (gpu + 1) * own; ++nic)
      links.push_back({name, fmt::format("nic{}", nic), node.nic_kind, node.nic.bandwidth});
  }
  return links;
}

std::vector<std::string> broken_wiring(const Node& node) {
  std::vector<std::string> broken;
  std::set<std::pair<std::string, std::string>> seen;
  for (const NodeLink& link : node.wiring) {
    const std::string ends = fmt::format("{} to {}", link.from, link.to);
    for (const std::string& end : {link.from, link.to}) {
      if (!names_what_is_there(end, node))
        broken.push_back(fmt::format("{} names a device that the node does not have ({} GPUs, {} NICs)", ends,
                                     node.gpus, node.nics));
    }
    if (link.from == link.to) broken.push_back(fmt::format("{} leads back to itself", ends));
    if (!seen.insert(std::minmax(link.from, link.to)).second)
      broken.push_back(fmt::format("{} is given twice", ends));
  }
  if (!broken.empty()) return broken;
  return unjoined_gpus(node);
}

}  // namespace rehearse
