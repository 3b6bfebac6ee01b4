#include "result/communication.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "plan/owners.h"
#include "plan/sharding.h"
#include "plan/units.h"
#include "result/memory/lifetimes.h"
#include "schedule/exchanged_weights.h"

namespace rehearse {

namespace {

using IsKind = bool (*)(OpKind);

bool is_message(OpKind kind) {
  return is_send(kind) || is_receive(kind);
}
bool is_gradient(OpKind kind) {
  return kind == OpKind::reduce_grad;
}
bool is_gather(OpKind kind) {
  return kind == OpKind::unshard;
}
bool is_replicas(OpKind kind) {
  return kind == OpKind::reduce_replicas;
}
bool is_copy_out(OpKind kind) {
  return kind == OpKind::offload || kind == OpKind::offload_grad;
}
bool is_copy_in(OpKind kind) {
  return kind == OpKind::reload || kind == OpKind::reload_param;
}
bool is_tied(OpKind kind) {
  return kind == OpKind::reduce_tied;
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

// Calls and busy time of the ops of one kind.
CommunicationLine line_of(const TimelineRank& rank, const RankOps& ops, IsKind is_kind) {
  CommunicationLine line;
  std::vector<Span> spans;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (is_kind(ops[i].kind)) spans.push_back(rank.spans[i]);
  line.calls = static_cast<std::int64_t>(spans.size());
  line.busy_s = union_seconds(std::move(spans));
  return line;
}

// Parameters that the ops of a kind cover; the parts of a stage cover it once. Experts without replicas move
// none.
double parameters_moved(const RankOps& ops, IsKind is_kind, const Plan& plan, const Work& work) {
  double parameters = 0;
  for (const Op& op : ops.ops())
    if (is_kind(op.kind) && op.part == 0 && op.stage < work.parts.size())
      parameters += work.parameters(op.stage) - (plan.edp() > 1 ? 0 : work.expert_parameters(op.stage));
  return parameters;
}

// Where each weight is gathered as a list by itself: the exchanges and what they move. A unit's weights
// count alike.
struct Exchanges {
  std::int64_t calls = 0;
  double parameters = 0;
};
Exchanges exchanges_of(const RankOps& ops, IsKind is_kind, const Plan& plan, const Work& work) {
  const std::vector<std::vector<Weights>> weights = unit_weights(work);
  std::vector<std::vector<double>> moved(work.parts.size());
  for (std::size_t stage = 0; stage < moved.size(); ++stage)
    for (const Unit& unit : units(work, static_cast<int>(stage)))
      moved[stage].push_back(unit.dense + (plan.edp() > 1 ? unit.experts : 0));
  Exchanges exchanges;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (!is_kind(op.kind)) continue;
    const std::vector<double>& of_stage = moved[op.stage];
    const int calls = weight_exchanges(ops, i, weights);
    exchanges.calls += calls;
    exchanges.parameters += (op.parts > 1 ? of_stage[static_cast<std::size_t>(unit_of(op))]
                                          : std::accumulate(of_stage.begin(), of_stage.end(), 0.0)) *
                            calls / exchanged_parts(op, weights);
  }
  return exchanges;
}

// Those of all owners that have any.
std::int64_t broadcasts(const RankOps& ops, const Plan& plan, const Work& work) {
  std::int64_t calls = 0;
  for (const Op& op : ops.ops())
    if (is_gather(op.kind) && op.stage < work.parts.size())
      calls +=
          std::ranges::count_if(owned_elements(work, plan, op.stage), [](double own) { return own > 0; });
  return calls;
}

// Elements of the largest parameter of the last block: the head's copy of the token table.
double table_elements(const Work& work) {
  double elements = 0;
  if (work.parts.empty() || work.parts.back().empty()) return elements;
  const Block& head = work.blocks[static_cast<std::size_t>(work.parts.back().back().block)];
  for (const Tensor& tensor : head.tensors)
    if (tensor.role == TensorRole::parameter) elements = std::max(elements, tensor.elements);
  return elements;
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

// The collectives of `times` ops of this kind on a stage.
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

void add_line(std::vector<CommunicationLine>& lines, CommunicationLine line, const char* kind, const char* op,
              CommGroup group, int ranks, double bytes, double exposed_s) {
  if (line.calls == 0) return;
  line.kind = kind;
  line.op = op;
  line.group = group;
  line.group_size = ranks;
  line.bytes_per_rank = bytes;
  line.exposed_s = exposed_s;
  lines.push_back(std::move(line));
}

void add_data_parallel(std::vector<CommunicationLine>& lines, const TimelineRank& rank, const RankOps& ops,
                       const Plan& plan, const Work& work, const Exposure& exposed) {
  const int ranks = group_size(CommGroup::shards, plan);
  const auto add = [&](IsKind is_kind, const char* op, double bytes_of_value, double exposed_s) {
    CommunicationLine line = line_of(rank, ops, is_kind);
    double parameters = parameters_moved(ops, is_kind, plan, work);
    if (exchanges_lists(plan)) {
      const Exchanges exchanges = exchanges_of(ops, is_kind, plan, work);
      line.calls = exchanges.calls;
      parameters = exchanges.parameters;
    }
    if (owns_parameters(plan) && is_kind == is_gather) line.calls = broadcasts(ops, plan, work);
    add_line(lines, std::move(line), "dp", op, CommGroup::shards, ranks, bytes_of_value * parameters,
             exposed_s);
  };
  add(is_gradient, scatters_gradients(plan) ? "reduce_scatter" : "all_reduce", gradient_wire_bytes(plan),
      exposed.dp);
  add_line(lines, line_of(rank, ops, is_replicas), "dp", "all_reduce", CommGroup::shard_replicas,
           shard_replicas(plan),
           gradient_wire_bytes(plan) * parameters_moved(ops, is_gradient, plan, work) / ranks,
           exposed.replicas);
  add(is_gather, owns_parameters(plan) ? "broadcast" : "all_gather", parameter_bytes(plan), exposed.gather);
}

// Each rank copies what it has of the gradients and parameters: its shard.
double copied_bytes(const RankOps& ops, IsKind is_kind, const Plan& plan, const Work& work,
                    const std::vector<StageBytes>& stages) {
  double bytes = 0;
  for (const Op& op : ops.ops()) {
    if (!is_kind(op.kind) || op.stage >= stages.size()) continue;
    const double shard =
        (stepped_dense(work, plan, op.stage) + stepped_experts(work, plan, op.stage)) / op.parts;
    if (op.kind == OpKind::offload_grad) bytes += shard * gradient_wire_bytes(plan);
    if (op.kind == OpKind::reload_param) bytes += shard * parameter_bytes(plan);
    if (has_microbatch(op.kind)) bytes += stages[op.stage].saved.others();
  }
  return bytes;
}

// The wait is laid to the two directions by their bytes.
void add_host_copies(std::vector<CommunicationLine>& lines, const TimelineRank& rank, const RankOps& ops,
                     const Plan& plan, const Work& work, double exposed_s) {
  if (plan.offload == Offload::none) return;
  const std::vector<StageBytes> stages = stage_bytes(work);
  const double out = copied_bytes(ops, is_copy_out, plan, work, stages);
  const double in = copied_bytes(ops, is_copy_in, plan, work, stages);
  if (!(out + in > 0)) return;
  add_line(lines, line_of(rank, ops, is_copy_out), "offload", "copy_to_host", CommGroup::host, 1, out,
           exposed_s * out / (out + in));
  add_line(lines, line_of(rank, ops, is_copy_in), "offload", "copy_from_host", CommGroup::host, 1, in,
           exposed_s * in / (out + in));
}

}  // namespace

std::string to_string(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "all_reduce";
    case CollectiveOp::all_gather:
      return "all_gather";
    case CollectiveOp::reduce_scatter:
      return "reduce_scatter";
    case CollectiveOp::all_to_all:
      return "all_to_all";
    case CollectiveOp::broadcast:
      return "broadcast";
    case CollectiveOp::send_receive:
      return "send_receive";
    case CollectiveOp::dispatch:
      return "dispatch";
    case CollectiveOp::combine:
      return "combine";
  }
  return "";
}

std::vector<CommunicationLine> communication_lines(const TimelineRank& rank, const RankOps& ops,
                                                   const Plan& plan, const Work& work, const RankTime& time) {
  std::vector<CommunicationLine> lines;
  const CommunicationLine messages = line_of(rank, ops, is_message);
  add_line(lines, messages, "pp", "send_receive", CommGroup::pipeline, 2,
           static_cast<double>(messages.calls) * work.boundary_bytes, time.exposed.pp);
  add_data_parallel(lines, rank, ops, plan, work, time.exposed);
  add_line(lines, line_of(rank, ops, is_tied), "tied", "all_reduce", CommGroup::embedding, 2,
           gradient_wire_bytes(plan) * table_elements(work), time.exposed.tied);
  add_host_copies(lines, rank, ops, plan, work, time.exposed.offload);
  add_collectives(lines, count_collectives(ops, work), plan, time.time);
  return lines;
}

}  // namespace rehearse
