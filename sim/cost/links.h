// Which measured cost stands for a link of this cluster, and at which rate does the link carry bytes?
#pragma once

#include <string>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// A link with its cost: start, time of a step, achieved bytes/s of one port.
struct Channel {
  double latency_s = 0;
  double step_latency_s = 0;
  double bandwidth = 0;
  bool stand_in = false;  // the profile knows no such link; InfiniBand's or NVSwitch's share was taken
};

constexpr const char* kHostLink = "host";  // LinkCost::kind of a GPU's way to its host

bool has_link(const Profile& profile, const std::string& kind, const std::string& op);

// A GPU's way to its node. MissingCalibration when the profile has neither this kind of link nor a stand-in.
Channel gpu_channel(const Profile& profile, const Cluster& cluster, const std::string& op);

// One NIC. InputError when the node has none.
Channel nic_channel(const Profile& profile, const Cluster& cluster, const std::string& op);

// NICs that one GPU has to itself; 1 where GPUs share them.
double nics_of_a_gpu(const Node& node);

}  // namespace rehearse
