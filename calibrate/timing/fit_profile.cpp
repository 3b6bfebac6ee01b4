#include "calibrate/timing/fit_profile.h"

#include <fmt/core.h>

#include <algorithm>

#include "calibrate/timing/fit_links.h"
#include "calibrate/timing/measured_collectives.h"

namespace rehearse {

namespace {

double ring_step_s(const FittedLinks& fitted) {
  const auto ring = std::find_if(fitted.links.begin(), fitted.links.end(),
                                 [](const LinkCost& link) { return link.op == "ring"; });
  return ring == fitted.links.end() ? 0 : ring->step_latency_s;
}

}  // namespace

void fit_measured(Profile& profile, const Cluster& cluster, bool by_nccl, std::vector<std::string>& notes) {
  const Measurement& measured = *profile.measurement;
  const auto keep = [&](const FittedLinks& fitted, const char* what) {
    for (const LinkCost& link : fitted.links) {
      std::erase_if(profile.links,
                    [&](const LinkCost& old) { return old.kind == link.kind && old.op == link.op; });
      profile.links.push_back(link);
    }
    if (fitted.above_port)
      notes.push_back(
          fmt::format("what was sent went faster than the cluster's {} can, which holds it back", what));
  };
  const FittedLinks within = fit_links(measured.messages, cluster.node.gpu_link, cluster.node.gpu_link_kind);
  keep(within, "gpu_link");
  keep(fit_nics(measured.messages, cluster, ring_step_s(within)), "NICs");
  keep(fit_host_link(measured.host_copies, cluster.node.host.link), "host link");
  const bool crosses = std::any_of(measured.messages.begin(), measured.messages.end(),
                                   [](const MessageSample& message) { return message.nodes > 1; });
  if (crosses && cluster.node.nics < 1)
    notes.push_back(fmt::format(
        "messages crossed machines, but the nodes of {} have no NIC: their times are kept and price nothing",
        cluster.name));
  if (by_nccl && !measured.messages.empty())
    profile.collectives = with_measured(profile.collectives, cluster, measured.messages);
}

}  // namespace rehearse
