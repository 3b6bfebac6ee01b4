#include "cost/offload.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "cost/links.h"

namespace rehearse {

namespace {

const Host& require_host(const Cluster& cluster) {
  const Host& host = cluster.node.host;
  if (host.link.bandwidth > 0 && host.adam_parameters_per_s > 0) return host;
  throw InputError({"", "/plan/offload", "offload needs the node's host link and CPU on record",
                    fmt::format("cluster {} has no \"host\" in its node", cluster.name),
                    "dgx-a100-80gb, dgx-h100 or p5.48xlarge"});
}

}  // namespace

double host_copy_s(const Profile& profile, const Cluster& cluster, double bytes) {
  const Port& link = require_host(cluster).link;
  if (!(bytes > 0)) return 0;
  for (const LinkCost& cost : profile.links) {
    if (cost.kind == kHostLink) return cost.latency_s + bytes / (cost.efficiency * link.bandwidth);
  }
  return link.latency + bytes / link.bandwidth;
}

double cpu_adam_s(const Cluster& cluster, const Plan& plan, double parameters) {
  const Host& host = require_host(cluster);
  return parameters * std::min(plan.gpus(), cluster.node.gpus) / host.adam_parameters_per_s;
}

}  // namespace rehearse
