#include "result/communication.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <tuple>

#include "plan/sharding.h"
#include "schedule/op_messages.h"

namespace rehearse {

namespace {

using Kinds = std::span<const OpKind>;
constexpr std::array kBetweenStages = {OpKind::send_forward, OpKind::recv_forward, OpKind::send_backward,
                                       OpKind::recv_backward};
constexpr std::array kToHost = {OpKind::offload, OpKind::offload_grad};
constexpr std::array kFromHost = {OpKind::reload, OpKind::reload_param};

bool is_among(OpKind kind, Kinds kinds) {
  return std::ranges::find(kinds, kind) != kinds.end();
}

double union_seconds(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  double seconds = 0, covered = 0;
  for (const Span& span : spans) {
    seconds += std::max(0.0, span.end - std::max(covered, span.begin));
    covered = std::max(covered, span.end);
  }
  return seconds;
}

struct Tally {
  std::int64_t calls = 0;
  double bytes = 0;
};
using Tallies = std::map<std::tuple<Axis, CollectiveOp, CommGroup>, Tally>;

void count(Tallies& tallies, const std::vector<Kernel>& kernels, std::int64_t times) {
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (!collective) continue;
    Tally& tally = tallies[{axis_of(collective->group), collective->op, collective->group}];
    const std::int64_t calls = times * collective->calls;
    tally.calls += calls;
    tally.bytes += static_cast<double>(calls) * collective->bytes;
  }
}

// Counts the collectives of `times` ops of this kind on a stage.
void count(Tallies& tallies, const Work& work, int stage, OpKind kind, std::int64_t times) {
  if (stage >= static_cast<int>(work.parts.size())) return;
  if (kind == OpKind::forward ? work.receives_activation(stage)
                              : begins_backward(kind) && work.receives_gradient(stage))
    count(tallies, work.arrival.forward, times);
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const std::int64_t runs = times * part.repeats;
    if (kind == OpKind::forward) count(tallies, block.forward, runs);
    if (begins_backward(kind)) {
      count(tallies, block.recompute, runs);
      count(tallies, block.backward_input, runs);
    }
    if (kind == OpKind::backward || kind == OpKind::backward_weight)
      count(tallies, block.backward_weight, runs);
  }
}

Tallies count_collectives(const RankOps& ops, const Work& work) {
  std::map<std::pair<int, OpKind>, std::int64_t> runs;
  for (const Op& op : ops.ops())
    if (is_compute(op.kind) && op.part == 0) ++runs[{op.stage, op.kind}];
  Tallies tallies;
  for (const auto& [op, times] : runs) count(tallies, work, op.first, op.second, times);
  return tallies;
}

double wire_bytes(CollectiveOp op, const Tally& tally) {
  return op == CollectiveOp::all_reduce ? 2 * tally.bytes : tally.bytes;
}

double exposed_on(Axis axis, const TimeShares& time) {
  if (axis == Axis::cp) return time.exposed_cp;
  return axis == Axis::ep ? time.exposed_ep : time.exposed_tp;
}

void add_collectives(std::vector<CommunicationLine>& lines, const Tallies& tallies, const Plan& plan,
                     const TimeShares& time) {
  std::map<Axis, double> on_wire;
  for (const auto& [key, tally] : tallies)
    on_wire[std::get<Axis>(key)] += wire_bytes(std::get<CollectiveOp>(key), tally);
  for (const auto& [key, tally] : tallies) {
    const auto [axis, op, group] = key;
    const int ranks = group_size(group, plan);
    if (ranks < 2) continue;
    const double share = on_wire[axis] > 0 ? wire_bytes(op, tally) / on_wire[axis] : 0;
    const double seconds = share * exposed_on(axis, time);
    lines.push_back(
        {to_string(axis), to_string(op), group, ranks, tally.calls, tally.bytes, seconds, seconds});
  }
}

// Counts the messages of the ops of these kinds. The parts of a stage together transfer the bytes of the
// whole stage.
Tallies count_messages(const RankOps& ops, Kinds kinds, const MessageSizes& sizes, const Plan& plan) {
  Tallies tallies;
  const auto tally = [&](const Collective& message) -> Tally& {
    return tallies[{axis_of(message.group), message.op, message.group}];
  };
  const bool in_pieces = exchanges_lists(plan);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (!is_among(op.kind, kinds)) continue;
    for (const Collective& message : messages_of(sizes, plan, ops, i)) {
      tally(message).calls += message.calls;
      if (in_pieces) tally(message).bytes += message.bytes * static_cast<double>(message.calls);
    }
    if (in_pieces || op.part > 0) continue;
    for (const Collective& message : messages_of(sizes, plan, sent_by(sizes, ops, i, true)))
      tally(message).bytes += message.bytes;
  }
  return tallies;
}

// One line for each group that the ops send to. Lines share the ops' seconds in proportion to bytes on the
// wire.
struct MessageLines {
  const TimelineRank& rank;
  const RankOps& ops;
  const MessageSizes& sizes;
  const Plan& plan;
  std::vector<CommunicationLine> lines = {};

  void add(Kinds kinds, const char* kind, double exposed_s, const char* op_name = nullptr) {
    std::vector<Span> spans;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (is_among(ops[i].kind, kinds)) spans.push_back(rank.spans[i]);
    if (spans.empty()) return;
    const double busy_s = union_seconds(std::move(spans));
    const Tallies tallies = count_messages(ops, kinds, sizes, plan);
    double on_wire = 0;
    for (const auto& [key, tally] : tallies) on_wire += wire_bytes(std::get<CollectiveOp>(key), tally);
    for (const auto& [key, tally] : tallies) {
      const auto [axis, op, group] = key;
      const double share =
          on_wire > 0 ? wire_bytes(op, tally) / on_wire : 1.0 / static_cast<double>(tallies.size());
      const int ranks = group == CommGroup::pipeline ? 2 : group_size(group, plan);
      if (tally.calls == 0 || (ranks < 2 && group != CommGroup::host)) continue;
      lines.push_back({kind, op_name ? op_name : to_string(op), group, ranks, tally.calls, tally.bytes,
                       share * busy_s, share * exposed_s});
    }
  }
};

double bytes_of(const Tallies& tallies) {
  double bytes = 0;
  for (const auto& [key, tally] : tallies) bytes += tally.bytes;
  return bytes;
}

}  // namespace

std::vector<CommunicationLine> communication_lines(const TimelineRank& rank, const RankOps& ops,
                                                   const Plan& plan, const Work& work,
                                                   const MessageSizes& sizes, const RankTime& time) {
  MessageLines lines{rank, ops, sizes, plan};
  const Exposure& exposed = time.exposed;
  lines.add(kBetweenStages, "pp", exposed.pp);
  lines.add(std::array{OpKind::reduce_grad}, "dp", exposed.dp);
  lines.add(std::array{OpKind::reduce_replicas}, "dp", exposed.replicas);
  lines.add(std::array{OpKind::unshard}, "dp", exposed.gather);
  lines.add(std::array{OpKind::reduce_tied}, "tied", exposed.tied);
  // The two directions share the wait in proportion to their bytes.
  const double out = bytes_of(count_messages(ops, kToHost, sizes, plan));
  const double copied = out + bytes_of(count_messages(ops, kFromHost, sizes, plan));
  if (copied > 0) {
    lines.add(kToHost, "offload", exposed.offload * out / copied, "copy_to_host");
    lines.add(kFromHost, "offload", exposed.offload * (copied - out) / copied, "copy_from_host");
  }
  add_collectives(lines.lines, count_collectives(ops, work), plan, time.time);
  return std::move(lines.lines);
}

}  // namespace rehearse
