// Which latency and bandwidth explain the messages that were timed?
#pragma once

#include <vector>

#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

struct FittedLinks {
  std::vector<LinkCost> links;  // of the node's own kind; "ring" and "send", as far as there are messages
  double worst_error = 0;       // of the fit over the messages, relative
  bool above_port = false;      // a message was faster than the port's nominal bandwidth
};

// Least squares of the relative error through the cost model of LinkCost, no cost negative. Bandwidth is
// kept as a share of `port`'s, at most all of it.
FittedLinks fit_links(const std::vector<MessageSample>& messages, const Port& port, const std::string& kind);

}  // namespace rehearse
