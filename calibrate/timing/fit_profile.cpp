#include "calibrate/timing/fit_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "calibrate/timing/fit_links.h"
#include "calibrate/timing/measured_collectives.h"
#include "cost/slowest_gpu.h"

namespace rehearse {

namespace {

double ring_step_s(const FittedLinks& fitted) {
  const auto ring = std::find_if(fitted.links.begin(), fitted.links.end(),
                                 [](const LinkCost& link) { return link.op == "ring"; });
  return ring == fitted.links.end() ? 0 : ring->step_latency_s;
}

// The coefficient of variation of the GPUs' times, and the distance of the first GPU, which timed the
// kernels, from their mean.
void keep_spread(const TogetherSample& together, Profile& profile, std::vector<std::string>& notes) {
  constexpr std::size_t kFewest = 4;  // of fewer a deviation has little meaning
  const std::size_t count = together.seconds.size();
  if (count < kFewest) return;
  double mean = 0, squares = 0;
  for (const double seconds : together.seconds) mean += seconds / static_cast<double>(count);
  for (const double seconds : together.seconds) squares += (seconds - mean) * (seconds - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(count - 1)) / mean;
  profile.gpu_spread = std::min(kMaxGpuSpread, deviation);
  notes.push_back(
      fmt::format("{} GPUs at once differ by {:.1f} % (deviation) in what a product takes; the first, on "
                  "which kernels were timed, takes {:+.1f} % of their mean more",
                  count, 100 * deviation, 100 * (together.seconds[0] / mean - 1)));
  if (deviation > kMaxGpuSpread)
    notes.push_back(
        fmt::format("{:.0f} % is taken of it, the most: one of the GPUs is slow for another reason",
                    100 * kMaxGpuSpread));
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
  if (measured.together) keep_spread(*measured.together, profile, notes);
  if (by_nccl && !measured.messages.empty())
    profile.collectives = with_measured(profile.collectives, cluster, measured.messages);
}

}  // namespace rehearse
