// Sent bytes equal received bytes, on each link and in exports.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "chakra_nodes.h"
#include "export/traces.h"
#include "plan/comm_group.h"
#include "run.h"

namespace rehearse::properties {
namespace {

// Are there as many of them in each node where there are any?
bool evenly_spread(const std::vector<int>& ranks, int gpus_per_node) {
  std::map<int, int> members;
  for (const int rank : ranks) ++members[rank / gpus_per_node];
  return std::ranges::all_of(members,
                             [&](const auto& node) { return node.second == members.begin()->second; });
}

// So do all groups that sum or gather.
bool groups_are_even(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const CommGroups groups(plan);
  for (int rank = 0; rank < plan.gpus(); ++rank)
    for (const CommGroup group : {CommGroup::shards, CommGroup::shard_replicas, CommGroup::expert_shards})
      if (!evenly_spread(groups.ranks(group, rank), experiment.cluster.node.gpus)) return false;
  return true;
}

// A port of a GPU or of a NIC is an outgoing link and the next incoming one; both are outermost at their end.
// Counted over all collectives of a step, as experts' groups may be larger than those whose ops are one task.
RC_GTEST_PROP(LegalRun, ReceivesOnEveryPortWhatItSendsInCollectives, ()) {
  const auto run = legal_run();
  const bool even = groups_are_even(run->experiment);
  RC_CLASSIFY(even, "as many ranks of a group in every node");
  if (!even) return;  // ranks of a fuller node send to the same one of the next
  if (run->experiment.conditions.jitter.messages > 0) return;  // others' flows answer a stretched task
  Experiment unfolded = run->experiment;
  unfolded.fold = Fold::none;
  Loads loads;
  const Preparation all = prepared(unfolded, loads);
  std::set<LinkId> fabric;  // a torus's links carry flows of their own beside those of the ports
  for (const auto& [id, link] : loads.fabric) fabric.insert(link);
  std::map<LinkId, double> net;  // by the port's link out
  double sent = 0, flows = 0;
  for (TaskId task = 0; task < all.tasks.size(); ++task) {
    const OpRef leader = all.tasks.leader[task];
    const int rank = all.tasks.instances[static_cast<std::size_t>(leader.instance)].pipeline_rank;
    const Op& op = all.schedule.ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(leader.op)];
    if (is_send(op.kind)) continue;
    for (const Flow& flow : loads.flows_of(task)) {
      const auto bytes = static_cast<double>(flow.bytes);
      const LinkId out = loads.ends[static_cast<std::size_t>(flow.ends.out)].front();
      if (fabric.contains(out)) continue;
      net[out] += bytes;
      net[loads.ends[static_cast<std::size_t>(flow.ends.in)].back() - 1] -= bytes;
      sent += bytes;
      ++flows;
    }
  }
  for (const auto& [port, bytes] : net) RC_ASSERT(std::abs(bytes) <= 1e-9 * sent + flows);  // whole bytes
}

struct Traces {
  std::vector<std::vector<ChakraNode>> of_rank;
  Json groups;
};

Traces traces_of(const Run& run) {
  const Report report = report_of(run.experiment, run.ready, run.reference);
  const TracedRun traced{run.reference, run.ready.schedule, report, run.ready.work};
  Traces traces;
  traces.groups = chakra_groups(traced);
  for (int rank = 0; rank < run.experiment.plan.gpus(); ++rank)
    traces.of_rank.push_back(read_chakra(chakra_trace(traced, traces.groups, rank)));
  return traces;
}

RC_GTEST_PROP(LegalRun, ExportsAReceiveOfAsManyBytesForEverySend, ()) {
  const auto run = legal_run();
  using Message = std::array<std::int64_t, 4>;  // source, destination, tag, bytes
  std::map<Message, int> open;
  const Traces traces = traces_of(*run);
  for (std::size_t rank = 0; rank < traces.of_rank.size(); ++rank) {
    for (const ChakraNode& node : traces.of_rank[rank]) {
      const bool sends = node.type == static_cast<int>(ChakraType::send);
      if (!sends && node.type != static_cast<int>(ChakraType::receive)) continue;
      const Message message = {node.numbers.at("comm_src"), node.numbers.at("comm_dst"),
                               node.numbers.at("comm_tag"), node.numbers.at("comm_size")};
      RC_ASSERT(message[sends ? 0 : 1] == static_cast<std::int64_t>(rank));
      RC_ASSERT(message[0] != message[1]);
      open[message] += sends ? 1 : -1;
    }
  }
  for (const auto& [message, unmatched] : open) RC_ASSERT(unmatched == 0);
}

RC_GTEST_PROP(LegalRun, ExportsTheSameCollectivesForAllRanksOfAGroup, ()) {
  const auto run = legal_run();
  using Calls = std::vector<std::array<std::int64_t, 2>>;  // type, bytes
  std::map<std::string, std::map<int, Calls>> calls;
  const Traces traces = traces_of(*run);
  for (std::size_t rank = 0; rank < traces.of_rank.size(); ++rank)
    for (const ChakraNode& node : traces.of_rank[rank])
      if (node.type == static_cast<int>(ChakraType::collective) && !node.group.empty())
        calls[node.group][static_cast<int>(rank)].push_back(
            {node.numbers.at("comm_type"), node.numbers.at("comm_size")});
  for (const auto& [group, of_rank] : calls) {
    const auto members = traces.groups.at(group).get<std::vector<int>>();
    RC_ASSERT(of_rank.size() == members.size());
    for (const int member : members) RC_ASSERT(of_rank.at(member) == of_rank.at(members.front()));
  }
}

}  // namespace
}  // namespace rehearse::properties
