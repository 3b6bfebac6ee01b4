// Which links join the GPUs, switches, CPUs and NICs inside a node?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

struct Node;

// Full duplex: `bandwidth` bytes/s each way at once. Ends are "gpu0", "nic1", or any other name (a PCIe
// switch, a CPU, an NVSwitch).
struct NodeLink {
  std::string from, to;
  std::string kind;  // "nvlink", "pcie", "cpu", "nvswitch", ...
  double bandwidth = 0;
};

// The node's own links where its file has them. Otherwise a switch that joins all GPUs, and each NIC next to
// the GPUs that use it.
std::vector<NodeLink> links_of(const Node& node);

// One direction of a link on the route between two GPUs of a node. GPUs are places 0, 1, ..., the others
// follow. Same route as shortest_route() in make_node_graph().
struct Wire {
  std::size_t from = 0, to = 0;
  double bandwidth = 0;  // bytes/s
};
std::vector<Wire> wires_between(const Node& node, int from_gpu, int to_gpu);

bool is_gpu(const std::string& name);  // "gpu" and a number
bool is_nic(const std::string& name);  // "nic" and a number

// Every broken rule of a wiring, as sentences: ends that name no GPU or NIC of the node, a link to itself or
// given twice, GPUs that are not connected.
std::vector<std::string> broken_wiring(const Node& node);

}  // namespace rehearse
