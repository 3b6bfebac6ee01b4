// Better hardware never makes a step slower, but for the anomalies that are named here.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <ostream>

#include "most.h"
#include "run.h"
#include "run/reference.h"

namespace rehearse::properties {
namespace {

// Relative to the step. Every op keeps its place in its stream, so that the longest path through the same ops
// is never longer when each is shorter: Graham's anomalies (1969) need lists that are dealt out anew.
constexpr double kExact = 1e-9;

// What is left, with how much slower the step may become:
// - NCCL opens more channels on wider links, which take more multiprocessors from kernels beside them, or
// takes
//   another algorithm or protocol by its own estimate of what is fastest. And what was measured over that
//   estimate on the hardware as it was is carried over to the estimate on wider links, where another choice
//   meets another ratio: collectives of a few kilobytes, of which small runs are full, feel it most.
constexpr double kOtherChoiceOfNccl = 0.5;
// - An op that waits for its host to launch kernels lasts no less when its collectives are faster: it waits
//   the longer. A slow rank stretches that wait as it stretches kernels, and so does jitter; beside passes in
//   pairs it grows by what an exchange ends sooner, whose time was hidden.
constexpr double kStretchedWaitForTheHost = 0.02;
// - Where flows share links, one that begins earlier may meet another that it used to miss, and hold up what
//   the last rank waits for.
constexpr double kOtherMeetings = 0.02;

void speed_up(Profile& profile, Gpu& gpu, double times) {
  gpu.memory_bandwidth *= times;
  for (auto& [precision, peak] : gpu.peak_flops) peak *= times;
  for (auto& [precision, samples] : profile.gemm)
    for (GemmSample& sample : samples) sample.seconds /= times;
  for (AttentionSample& sample : profile.attention) sample.flops_per_s *= times;
  for (auto& [kernel, samples] : profile.stream)
    for (StreamSample& sample : samples) sample.bytes_per_s *= times;
  profile.launch_s /= times;
  profile.host_launch_s /= times;
  profile.host_collective_s /= times;
}

void widen_gpu_links(Experiment& experiment, double times) {
  experiment.cluster.node.gpu_link.bandwidth *= times;
  for (NodeKind& kind : experiment.stage_nodes.kinds) kind.cluster.node.gpu_link.bandwidth *= times;
}

void widen_nics(Experiment& experiment, double times) {
  experiment.cluster.node.nic.bandwidth *= times;
  experiment.cluster.fabric.link_bandwidth *= times;
  for (NodeKind& kind : experiment.stage_nodes.kinds) kind.cluster.node.nic.bandwidth *= times;
}

void cut_latency(Experiment& experiment, double times) {
  const auto cut = [times](Node& node) {
    node.gpu_link.latency /= times;
    node.nic.latency /= times;
  };
  cut(experiment.cluster.node);
  for (NodeKind& kind : experiment.stage_nodes.kinds) cut(kind.cluster.node);
}

void relieve_fabric(Experiment& experiment, double times) {
  for (FabricLevel& level : experiment.cluster.fabric.levels)
    level.oversubscription = std::max(1.0, level.oversubscription / times);
}

void speed_up_gpus(Experiment& experiment, double times) {
  speed_up(experiment.profile, experiment.cluster.gpu, times);
  for (NodeKind& kind : experiment.stage_nodes.kinds) speed_up(kind.profile, kind.cluster.gpu, times);
}

struct Better {
  const char* what = "";
  void (*make)(Experiment& experiment, double times) = nullptr;
};
void showValue(const Better& better, std::ostream& out) {
  out << better.what;
}
const std::vector<Better> kBetter = {{"wider GPU links", widen_gpu_links},
                                     {"wider NICs", widen_nics},
                                     {"less latency", cut_latency},
                                     {"a wider fabric", relieve_fabric},
                                     {"faster GPUs", speed_up_gpus}};

// Links that take what their width says, and nothing from the kernels beside them.
void without_nccl(Profile& profile, Cluster& cluster) {
  constexpr double kNoLimit = 1e30;
  const Node& node = cluster.node;
  cluster.gpu.memory_bandwidth = kNoLimit;
  profile.collectives = nullptr;
  profile.links.clear();
  for (const std::string& kind : {node.gpu_link_kind, node.nic_kind}) {
    profile.links.push_back({kind, "ring", 1e-5, 1e-6, 0.8, How::published});
    profile.links.push_back({kind, "send", 1e-5, 0, 0.8, How::published});
  }
}

void without_nccl(Run& run) {
  without_nccl(run.experiment.profile, run.experiment.cluster);
  for (NodeKind& kind : run.experiment.stage_nodes.kinds) without_nccl(kind.profile, kind.cluster);
  run.ready = prepared(run.experiment, run.loads);
  run.reference = reference(run.ready.schedule, run.ready.tasks, run.loads);
}

bool stretches_waits(const Experiment& experiment) {
  return experiment.conditions.jitter.compute > 0 || experiment.plan.pairs_passes() ||
         std::ranges::any_of(experiment.conditions.slow,
                             [](const Slow& slow) { return slow.part == Slow::Part::rank; });
}

void require_no_slower(const std::string& what, double before, double after, double allowed) {
  RC_CLASSIFY(after > before * (1 + 1e-6), fmt::format("slower: {}", what));
  if (after > before * (1 + 1e-6)) note_most("slower: " + what, after / before - 1);
  if (after > before * (1 + allowed) + 1e-8)  // a few times SimGrid's resolution
    RC_FAIL(fmt::format("{}: {} s before, {} s after: {:+.4f} %", what, before, after,
                        100 * (after / before - 1)));
}

RC_GTEST_PROP(LegalRun, IsNoSlowerOnBetterHardware, ()) {
  Run run = *legal_run();
  const bool nccl = *rc::gen::arbitrary<bool>();
  if (!nccl) without_nccl(run);
  const Better better = *rc::gen::elementOf(kBetter);
  Experiment changed = run.experiment;
  better.make(changed, *rc::gen::element(2.0, 1.3, 1.05));
  Loads loads;
  const Preparation ready = prepared(changed, loads);
  const auto before = simulated(run), after = simulated(ready.schedule, ready.tasks, loads);
  RC_ASSERT(before.has_value());
  RC_ASSERT(after.has_value());
  const double allowed = nccl && run.experiment.profile.collectives ? kOtherChoiceOfNccl
                         : stretches_waits(run.experiment)          ? kStretchedWaitForTheHost
                                                                    : kExact;
  const char* links = nccl                              ? "NCCL"
                      : stretches_waits(run.experiment) ? "plain links, waits stretched"
                                                        : "plain links";
  const std::string what = fmt::format("{}, {}", better.what, links);
  require_no_slower(what + ", longest path", longest_path_s(run.experiment), longest_path_s(changed),
                    allowed);
  require_no_slower(what + ", simulated", before->end(), after->end(), std::max(allowed, kOtherMeetings));
}

}  // namespace
}  // namespace rehearse::properties
