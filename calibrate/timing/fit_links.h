// Which latency and bandwidth explain the messages that were timed?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

struct FittedLinks {
  std::vector<LinkCost> links;  // of the node's own kind; "ring" and "send" where there are messages
  double worst_error = 0;       // of the fit over the messages, relative
  bool above_port = false;      // a message was faster than the port's nominal bandwidth
};

// Least squares of the relative error of LinkCost's model, without negative costs. Bandwidth is stored as a
// share of `port`'s, at most 1. Messages within one machine.
FittedLinks fit_links(const std::vector<MessageSample>& messages, const Port& port, const std::string& kind);

// The same for messages between machines, for the cluster's NICs. `local_step_s`: time of a ring's step
// within a machine. None when the nodes have no NIC.
FittedLinks fit_nics(const std::vector<MessageSample>& messages, const Cluster& cluster, double local_step_s);

// The same for copies between a GPU and its host (kHostLink): latency and bandwidth. None without copies.
FittedLinks fit_host_link(const std::vector<HostCopySample>& copies, const Port& port);

}  // namespace rehearse
