#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "export/proto_writer.h"
#include "export/traces.h"
#include "plan/comm_group.h"
#include "plan/sharding.h"
#include "plan/stages.h"

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

CommGroup group_of(OpKind kind) {
  if (kind == OpKind::reduce_replicas) return CommGroup::shard_replicas;
  return kind == OpKind::reduce_tied ? CommGroup::embedding : CommGroup::shards;
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
      : run_(run), plan_(run.report.plan), grid_(plan_), groups_(groups), rank_(rank) {}

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
    std::array<std::int64_t, kStreams> last;
    last.fill(-1);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::int64_t& before = last[static_cast<std::size_t>(ops[i].stream)];
      bytes_ += op_node(ops, i, timeline->spans[i], before).delimited();
      before = static_cast<std::int64_t>(i);
    }
    return std::move(bytes_);
  }

 private:
  int pipeline_rank() const { return grid_.coordinates(rank_)[static_cast<std::size_t>(Axis::pp)]; }

  static std::uint64_t micros(double seconds) {
    return static_cast<std::uint64_t>(std::llround(seconds * 1e6));
  }

  // Ops are numbered from 1, as they are issued.
  ProtoWriter op_node(const RankOps& ops, std::size_t index, const Span& span, std::int64_t before) {
    const Op& op = ops[index];
    ProtoWriter node;
    node.varint(node::kId, index + 1);
    node.text(node::kName, to_string(op));
    node.varint(node::kType, type_of(op.kind));
    if (before >= 0) node.varint(node::kControl, static_cast<std::uint64_t>(before) + 1);
    for (const std::int32_t wait : ops.waits(op))
      node.varint(node::kData, static_cast<std::uint64_t>(wait) + 1);
    node.varint(node::kStart, micros(span.begin));
    node.varint(node::kDuration, micros(span.end) - micros(span.begin));
    add(node, "is_cpu_op", attribute::kBool, 0);
    describe(node, op);
    return node;
  }

  static std::uint64_t type_of(OpKind kind) {
    if (is_send(kind)) return send;
    if (is_receive(kind)) return receive;
    if (is_host_copy(kind)) return stream_of(kind) == Stream::to_host ? store : load;
    const bool sums = stream_of(kind) == Stream::gradient || kind == OpKind::unshard;
    return sums ? collective : compute;
  }

  static void add(ProtoWriter& node, const char* name, int field, std::uint64_t value) {
    ProtoWriter inner;
    inner.text(attribute::kName, name);
    inner.varint(field, value);
    node.message(node::kAttribute, inner);
  }

  void describe(ProtoWriter& node, const Op& op) {
    switch (type_of(op.kind)) {
      case send:
      case receive:
        return message(node, op);
      case collective:
        return sum(node, op);
      case load:
      case store:
        return add(node, "tensor_size", attribute::kUint64, whole(run_.work.saved_bytes(op.stage)));
      default:
        return work(node, op);
    }
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

  void message(ProtoWriter& node, const Op& op) {
    const bool forward = op.kind == OpKind::send_forward || op.kind == OpKind::recv_forward;
    const int other = op.stage + (is_send(op.kind) == forward ? 1 : -1);
    Coordinates at = grid_.coordinates(rank_);
    at[static_cast<std::size_t>(Axis::pp)] = pipeline_rank_of(other, plan_);
    const int peer = grid_.rank(at), receiving = is_send(op.kind) ? other : op.stage;
    const std::int64_t tag =
        (std::int64_t{receiving} * run_.schedule.microbatches + op.microbatch) * 2 + forward;
    add(node, "comm_size", attribute::kInt64, whole(run_.work.boundary_bytes));
    add(node, "comm_src", attribute::kInt32, static_cast<std::uint64_t>(is_send(op.kind) ? rank_ : peer));
    add(node, "comm_dst", attribute::kInt32, static_cast<std::uint64_t>(is_send(op.kind) ? peer : rank_));
    add(node, "comm_tag", attribute::kInt32, static_cast<std::uint64_t>(tag));
  }

  void sum(ProtoWriter& node, const Op& op) {
    const bool scatters = op.kind == OpKind::reduce_grad && scatters_gradients(plan_);
    const CollectiveType gather = owns_parameters(plan_) ? broadcast : all_gather;
    const CollectiveType type = op.kind == OpKind::unshard ? gather : scatters ? reduce_scatter : all_reduce;
    add(node, "comm_type", attribute::kInt64, static_cast<std::uint64_t>(type));
    const std::vector<int> ranks = CommGroups(plan_).ranks(group_of(op.kind), rank_);
    // ASTRA-sim reads the size of a rank's input, as Chakra's converter of PyTorch traces writes it
    // (pytorch_node.py, comm_size). A ring of n gathers by n - 1 messages of comm_size each; it reduces and
    // scatters by n - 1 of comm_size / n (astra-sim, native_collectives, Ring.cc).
    const double given =
        type == all_gather ? sum_bytes(op) / static_cast<double>(ranks.size()) : sum_bytes(op);
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

  double sum_bytes(const Op& op) const {
    const double parameters = run_.work.parameters(op.stage);
    if (op.kind == OpKind::unshard) return parameters * parameter_bytes(plan_) / op.parts;
    if (op.kind == OpKind::reduce_replicas)
      return parameters * gradient_wire_bytes(plan_) / shard_size(plan_) / op.parts;
    if (op.kind != OpKind::reduce_tied) return parameters * gradient_wire_bytes(plan_) / op.parts;
    const Model& model = run_.report.model;
    const double rows = std::ceil(static_cast<double>(model.vocab) / plan_.tp);
    return rows * static_cast<double>(model.hidden) * gradient_wire_bytes(plan_);
  }

  const TracedRun& run_;
  const Plan& plan_;
  RankGrid grid_;
  const Json& groups_;
  int rank_;
  std::string bytes_;
};

}  // namespace

Json chakra_groups(const Plan& plan, bool tied) {
  const CommGroups groups_of(plan);
  std::set<std::vector<int>> known;
  Json groups = Json::object();
  for (int rank = 0; rank < plan.gpus(); ++rank) {
    std::vector<OpKind> kinds = {OpKind::reduce_grad, OpKind::reduce_replicas};
    if (tied && plan.pp > 1) kinds.push_back(OpKind::reduce_tied);
    for (const OpKind kind : kinds) {
      const std::vector<int> ranks = groups_of.ranks(group_of(kind), rank);
      if (ranks.size() < 2 || !known.insert(ranks).second) continue;
      groups[std::to_string(groups.size())] = ranks;
    }
  }
  return groups;
}

std::string chakra_trace(const TracedRun& run, const Json& groups, int rank) {
  return ChakraWriter(run, groups, rank).write();
}

}  // namespace rehearse
