// How are the connections of a cluster file read: "wiring" of the node and "fabric"?
#pragma once

#include "base/json_reader.h"
#include "cluster/cluster.h"

namespace rehearse {

// node.wiring: a list of {"among": [names], ...} (a link for each pair) and {"hub": name, "to": [names], ...}
// (a link from the hub to each), each with "kind" and "bandwidth" of one link. InputError when it breaks a
// rule.
std::vector<NodeLink> read_wiring(const JsonReader& node, const Node& so_far);

// nics.of_gpu: the NIC of each GPU. Empty when not given.
std::vector<int> read_nic_of_gpu(const JsonReader& nics, const Node& so_far);

// fabric: a sentence (one switch joins all nodes without loss), or an object with "kind" and its parameters.
Fabric read_fabric(const JsonReader& cluster, const Cluster& so_far);

}  // namespace rehearse
