#include "cost/offload.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "cost/links.h"
#include "plan/recipe.h"

namespace rehearse {

namespace {

const Host& require_host(const Cluster& cluster) {
  const Host& host = cluster.node.host;
  if (host.link.bandwidth > 0 && host.adam_parameters_per_s > 0) return host;
  throw InputError({"", "/plan/offload", "offload needs the node's host link and CPU on record",
                    fmt::format("cluster {} has no \"host\" in its node", cluster.name),
                    "dgx-a100-80gb, dgx-h100 or p5.48xlarge"});
}

// Bytes of clipping over bytes of Adam. Both stream through the host's memory.
double clipped_share(const Plan& plan) {
  const StateBytes bytes = state_bytes(plan);
  const double gradient = bytes.gradient_copy > 0 ? bytes.gradient_copy : bytes.gradient;
  return 2 * gradient / (gradient + 2 * (bytes.moments + bytes.master) + bytes.parameter);
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

double cpu_step_s(const Cluster& cluster, const Plan& plan, double parameters) {
  const Host& host = require_host(cluster);
  const double adam_s = parameters * std::min(plan.gpus(), cluster.node.gpus) / host.adam_parameters_per_s;
  return plan.clip_grad > 0 ? adam_s * (1 + clipped_share(plan)) : adam_s;
}

}  // namespace rehearse
