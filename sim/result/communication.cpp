#include "result/communication.h"

#include <algorithm>
#include <map>

#include "plan/recipe.h"

namespace rehearse {

namespace {

using IsKind = bool (*)(OpKind);

bool is_message(OpKind kind) {
  return is_send(kind) || is_receive(kind);
}
bool is_gradient(OpKind kind) {
  return kind == OpKind::reduce_grad;
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

double parameters_of(int pipeline_rank, const Plan& plan, const Work& work) {
  double parameters = 0;
  for (int s = 0; s < static_cast<int>(work.parts.size()); ++s)
    if (pipeline_rank_of(s, plan.pp) == pipeline_rank) parameters += work.parameters(s);
  return parameters;
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
using Tallies = std::map<std::pair<Axis, CollectiveOp>, Tally>;

void count(Tallies& tallies, const std::vector<Kernel>& kernels, std::int64_t times) {
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (!collective) continue;
    Tally& tally = tallies[{collective->axis, collective->op}];
    tally.calls += times;
    tally.bytes += static_cast<double>(times) * collective->bytes;
  }
}

// The collectives of `times` ops of this kind on a stage.
void count(Tallies& tallies, const Work& work, int stage, OpKind kind, std::int64_t times) {
  if (stage >= static_cast<int>(work.parts.size())) return;
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const std::int64_t runs = times * part.repeats;
    if (kind == OpKind::forward) count(tallies, block.forward, runs);
    if (kind == OpKind::backward || kind == OpKind::backward_input) {
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

int members(Axis axis, const Plan& plan) {
  if (axis == Axis::cp) return plan.cp;
  return axis == Axis::ep ? plan.ep : plan.tp;
}

void add_collectives(std::vector<CommunicationLine>& lines, const Tallies& tallies, const Plan& plan,
                     const TimeShares& time) {
  std::map<Axis, double> on_wire;
  for (const auto& [key, tally] : tallies) on_wire[key.first] += wire_bytes(key.second, tally);
  for (const auto& [key, tally] : tallies) {
    const auto [axis, op] = key;
    if (members(axis, plan) < 2) continue;
    const double share = on_wire[axis] > 0 ? wire_bytes(op, tally) / on_wire[axis] : 0;
    const double seconds = share * exposed_on(axis, time);
    lines.push_back(
        {to_string(axis), to_string(op), members(axis, plan), tally.calls, tally.bytes, seconds, seconds});
  }
}

void add_line(std::vector<CommunicationLine>& lines, CommunicationLine line, const char* kind, const char* op,
              int group_size, double bytes, double exposed_s) {
  if (line.calls == 0) return;
  line.kind = kind;
  line.op = op;
  line.group_size = group_size;
  line.bytes_per_rank = bytes;
  line.exposed_s = exposed_s;
  lines.push_back(std::move(line));
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
  }
  return "";
}

std::vector<CommunicationLine> communication_lines(const TimelineRank& rank, const RankOps& ops,
                                                   const Plan& plan, const Work& work, const RankTime& time) {
  std::vector<CommunicationLine> lines;
  const double element = state_bytes(plan).gradient;
  const CommunicationLine messages = line_of(rank, ops, is_message);
  add_line(lines, messages, "pp", "send_receive", 2,
           static_cast<double>(messages.calls) * work.boundary_bytes, time.exposed.pp);
  add_line(lines, line_of(rank, ops, is_gradient), "dp", "all_reduce", plan.dp * plan.cp,
           element * parameters_of(rank.instance.pipeline_rank, plan, work), time.exposed.dp);
  add_line(lines, line_of(rank, ops, is_tied), "tied", "all_reduce", 2, element * table_elements(work),
           time.exposed.tied);
  add_collectives(lines, count_collectives(ops, work), plan, time.time);
  return lines;
}

}  // namespace rehearse
