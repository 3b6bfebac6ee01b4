#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "export/proto_writer.h"
#include "export/traces.h"
#include "memory/lifetimes.h"
#include "plan/messages.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "schedule/op_messages.h"

namespace rehearse {

namespace {

// Field numbers and values of mlcommons/chakra, schema/protobuf/et_def.proto.
namespace node {
constexpr int kId = 1, kName = 2, kType = 3, kControl = 4, kData = 5, kStart = 6, kDuration = 7,
              kAttribute = 10;
}
enum NodeType : std::uint64_t { load = 2, store = 3, compute = 4, send = 5, receive = 6, collective = 7 };
enum CollectiveType : std::int64_t { all_reduce = 0, all_gather = 2, broadcast = 5, reduce_scatter = 7 };
namespace attribute {
constexpr int kName = 1, kInt32 = 7, kInt64 = 9, kUint64 = 13, kBool = 27, kText = 29;
}
constexpr const char* kVersion = "0.0.4";

std::vector<int> sorted_ranks(const CommGroups& groups, CommGroup group, int rank) {
  std::vector<int> ranks = groups.ranks(group, rank);
  std::ranges::sort(ranks);
  return ranks;
}

std::uint64_t type_of_op(OpKind kind) {
  if (is_send(kind)) return send;
  if (is_receive(kind)) return receive;
  if (is_host_copy(kind)) return stream_of(kind) == Stream::to_host ? store : load;
  const bool sums = stream_of(kind) == Stream::gradient || kind == OpKind::unshard;
  return sums ? collective : compute;
}

CollectiveType chakra_type(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_gather:
      return all_gather;
    case CollectiveOp::reduce_scatter:
      return reduce_scatter;
    case CollectiveOp::broadcast:
      return broadcast;
    default:
      return all_reduce;
  }
}

double forward_half(const Work& work, OpKind kind, int stage,
                    double (*measure)(const Block&, const Kernel&)) {
  double total = 0;
  if (kind == OpKind::forward ? work.receives_activation(stage)
                              : begins_backward(kind) && work.receives_gradient(stage))
    for (const Kernel& kernel : work.arrival.forward) total += measure(work.arrival, kernel);
  for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const auto add = [&](const std::vector<Kernel>& kernels) {
      for (const Kernel& kernel : kernels)
        total += static_cast<double>(part.repeats) * measure(block, kernel);
    };
    if (kind == OpKind::forward) add(block.forward);
    if (begins_backward(kind)) {
      add(block.recompute);
      add(block.backward_input);
    }
    if (completes_gradient(kind)) add(block.backward_weight);
  }
  return total;
}

class ChakraWriter {
 public:
  ChakraWriter(const TracedRun& run, const Json& groups, int rank)
      : run_(run),
        plan_(run.report.plan),
        grid_(plan_),
        comm_groups_(plan_),
        sizes_(message_sizes(run.work, run.report.model, plan_, offloaded_bytes(run.work))),
        groups_(groups),
        rank_(rank) {}

  std::string write() {
    ProtoWriter head;
    head.text(1, kVersion);
    bytes_ = head.delimited();
    const auto of_pipeline = [this](const TimelineRank& candidate) {
      return candidate.instance.pipeline_rank == pipeline_rank();
    };
    const auto timeline = std::ranges::find_if(run_.timeline.ranks, of_pipeline);
    if (timeline == run_.timeline.ranks.end()) return std::move(bytes_);
    const RankOps& ops = run_.schedule.ranks[static_cast<std::size_t>(pipeline_rank())];
    for (std::size_t i = 0; i < ops.size(); ++i) add_op(ops, i, timeline->spans[i]);
    return std::move(bytes_);
  }

 private:
  int pipeline_rank() const { return grid_.coordinates(rank_)[static_cast<std::size_t>(Axis::pp)]; }

  static std::uint64_t micros(double seconds) {
    return static_cast<std::uint64_t>(std::llround(seconds * 1e6));
  }

  // One node, or one for each group that the op's messages go to. Such nodes share the op's time evenly.
  void add_op(const RankOps& ops, std::size_t index, const Span& span) {
    const Op& op = ops[index];
    const std::vector<Collective> sent = messages_by_group(sizes_, plan_, comm_groups_, ops, index);
    const std::size_t nodes = std::max<std::size_t>(1, sent.size());
    const double each = (span.end - span.begin) / static_cast<double>(nodes);
    for (std::size_t i = 0; i < nodes; ++i) {
      const double begin = span.begin + static_cast<double>(i) * each;
      const double end = i + 1 == nodes ? span.end : begin + each;
      add_node(ops, op, {begin, end}, i < sent.size() ? &sent[i] : nullptr);
    }
    node_of_.push_back(nodes_);
  }

  // Nodes are numbered from 1, in the issue order of their ops.
  void add_node(const RankOps& ops, const Op& op, const Span& span, const Collective* sent) {
    ProtoWriter node;
    node.varint(node::kId, ++nodes_);
    node.text(node::kName, to_string(op));
    node.varint(node::kType, type_of_op(op.kind));
    std::uint64_t& before = last_[static_cast<std::size_t>(op.stream)];
    if (before > 0) node.varint(node::kControl, before);
    for (const std::int32_t wait : ops.waits(op))
      node.varint(node::kData, node_of_[static_cast<std::size_t>(wait)]);
    node.varint(node::kStart, micros(span.begin));
    node.varint(node::kDuration, micros(span.end) - micros(span.begin));
    add(node, "is_cpu_op", attribute::kBool, 0);
    describe(node, op, sent);
    bytes_ += node.delimited();
    before = nodes_;
  }

  static void add(ProtoWriter& node, const char* name, int field, std::uint64_t value) {
    ProtoWriter inner;
    inner.text(attribute::kName, name);
    inner.varint(field, value);
    node.message(node::kAttribute, inner);
  }

  void describe(ProtoWriter& node, const Op& op, const Collective* sent) {
    if (sent == nullptr) return work(node, op);
    if (sent->group == CommGroup::pipeline) return message(node, op, *sent);
    if (sent->group == CommGroup::host)
      return add(node, "tensor_size", attribute::kUint64, whole(sent->bytes));
    collective_of(node, *sent);
  }

  static std::uint64_t whole(double value) { return static_cast<std::uint64_t>(std::llround(value)); }

  void work(ProtoWriter& node, const Op& op) {
    double operations = 0, bytes = 0;
    if (is_compute(op.kind)) {
      operations = forward_half(run_.work, op.kind, op.stage,
                                [](const Block&, const Kernel& kernel) { return flops(kernel); });
      bytes = forward_half(run_.work, op.kind, op.stage, [](const Block& block, const Kernel& kernel) {
        return block.bytes_moved(kernel);
      });
    } else if (op.kind == OpKind::step) {
      for (int stage = 0; stage < run_.schedule.stages; ++stage)
        if (pipeline_rank_of(stage, plan_) == pipeline_rank()) bytes += step_bytes(stage);
    }
    add(node, "num_ops", attribute::kInt64, whole(operations / op.parts));
    add(node, "tensor_size", attribute::kUint64, whole(bytes / op.parts));
  }

  double step_bytes(int stage) const {
    Block scratch;
    const double parameters = run_.work.parameters(stage) / sharding(plan_).optimizer;
    double bytes = 0;
    for (const Kernel& kernel : optimizer_kernels(parameters, plan_, scratch))
      bytes += scratch.bytes_moved(kernel);
    return bytes;
  }

  void message(ProtoWriter& node, const Op& op, const Collective& sent) {
    const bool forward = op.kind == OpKind::send_forward || op.kind == OpKind::recv_forward;
    const int other = op.stage + (is_send(op.kind) == forward ? 1 : -1);
    Coordinates at = grid_.coordinates(rank_);
    at[static_cast<std::size_t>(Axis::pp)] = pipeline_rank_of(other, plan_);
    const int peer = grid_.rank(at), receiving = is_send(op.kind) ? other : op.stage;
    const std::int64_t tag =
        (std::int64_t{receiving} * run_.schedule.microbatches + op.microbatch) * 2 + forward;
    add(node, "comm_size", attribute::kInt64, whole(sent.bytes));
    add(node, "comm_src", attribute::kInt32, static_cast<std::uint64_t>(is_send(op.kind) ? rank_ : peer));
    add(node, "comm_dst", attribute::kInt32, static_cast<std::uint64_t>(is_send(op.kind) ? peer : rank_));
    add(node, "comm_tag", attribute::kInt32, static_cast<std::uint64_t>(tag));
  }

  void collective_of(ProtoWriter& node, const Collective& sent) {
    add(node, "comm_type", attribute::kInt64, static_cast<std::uint64_t>(chakra_type(sent.op)));
    const std::vector<int> ranks = sorted_ranks(comm_groups_, sent.group, rank_);
    // ASTRA-sim uses the input size of a rank, as Chakra's converter of PyTorch traces writes it
    // (pytorch_node.py, comm_size). A ring of n gathers with n - 1 messages of comm_size each. It reduces and
    // scatters with n - 1 messages of comm_size / n (astra-sim, native_collectives, Ring.cc).
    const bool gathers = sent.op == CollectiveOp::all_gather;
    const double given = gathers ? sent.bytes / static_cast<double>(ranks.size()) : sent.bytes;
    add(node, "comm_size", attribute::kInt64, whole(given));
    for (const auto& [name, members] : groups_.items()) {
      if (members != Json(ranks)) continue;
      ProtoWriter inner;
      inner.text(attribute::kName, "pg_name");
      inner.text(attribute::kText, name);
      node.message(node::kAttribute, inner);
      return;
    }
  }

  const TracedRun& run_;
  const Plan& plan_;
  RankGrid grid_;
  CommGroups comm_groups_;
  MessageSizes sizes_;
  const Json& groups_;
  int rank_;
  std::string bytes_;
  std::uint64_t nodes_ = 0;
  std::array<std::uint64_t, kStreams> last_{};  // node by stream
  std::vector<std::uint64_t> node_of_;          // the last of each op
};

}  // namespace

Json chakra_groups(const TracedRun& run) {
  const Plan& plan = run.report.plan;
  std::set<CommGroup> kinds;
  for (const StepMessage& message : step_messages(run.work, run.report.model, plan))
    if (type_of_op(message.kind) == collective) kinds.insert(message.what.group);  // has_peers()
  const CommGroups groups_of(plan);
  std::set<std::vector<int>> known;
  Json groups = Json::object();
  for (int rank = 0; rank < plan.gpus(); ++rank) {
    for (const CommGroup kind : kinds) {
      const std::vector<int> ranks = sorted_ranks(groups_of, kind, rank);
      if (!known.insert(ranks).second) continue;
      groups[std::to_string(groups.size())] = ranks;
    }
  }
  return groups;
}

std::string chakra_trace(const TracedRun& run, const Json& groups, int rank) {
  return ChakraWriter(run, groups, rank).write();
}

}  // namespace rehearse
