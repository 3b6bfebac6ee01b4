#include "cost/pricing.h"

#include <algorithm>
#include <optional>

#include "cost/contention.h"
#include "cost/host_launches.h"
#include "cost/lists.h"
#include "cost/row_exchange.h"
#include "cost/slowest_gpu.h"
#include "cost/train_metrics.h"
#include "plan/sharding.h"
#include "plan/weights.h"

namespace rehearse {

namespace {

// Blocks of a reduce-scatter that Transformer Engine's user buffers run beside the chunks of a GEMM
// (pytorch/module/base.py, initialize_ub: num_sm).
constexpr double kUserBufferBlocks = 16;

// The part of TimeParts that a kernel's seconds count towards.
double& part_of(TimeParts& parts, const Kernel& kernel, bool recompute) {
  if (const auto* collective = std::get_if<Collective>(&kernel.what)) {
    const Axis axis = axis_of(collective->group);
    return axis == Axis::cp ? parts.cp : axis == Axis::ep ? parts.ep : parts.tp;
  }
  return recompute ? parts.recompute : parts.compute;
}

// Share of the memory's bandwidth at which experts' GEMMs that also activate and quantize move the extra
// bytes. The GEMM hides none of that time (calibrate/data/experts/fused_products.json).
constexpr double kEpilogue = 0.41;

// Bytes that a GEMM moves beside two operands and a result in bf16.
double bytes_beside(const Block& block, const Kernel& kernel, const Gemm& gemm) {
  const auto bytes = [&](Slot slot) {
    return block.tensors[static_cast<std::size_t>(kernel.reads.in(slot))].bytes();
  };
  const double result =
      2 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) * static_cast<double>(gemm.batch);
  return std::max(0.0, block.bytes_moved(kernel) - bytes(Slot::operand) - bytes(Slot::weight) - result);
}

std::size_t inner_group(const Collective& collective) {
  return static_cast<std::size_t>(collective.group);
}

}  // namespace

Pricing::Pricing(const Plan& plan, const Cluster& cluster, const Profile& profile, KernelTimes& times)
    : on_slowest(slowest_gpu(profile, cluster, plan.gpus())),
      plan_(plan),
      cluster_(cluster),
      profile_(profile),
      precision_(plan.precision),
      graphs_passes_(plan.cuda_graph && plan.cuda_graph_modules.empty()),
      launch_blocking_(plan.launch_blocking),
      prefetches_(plan.prefetch > 0),
      pairs_passes_(plan.pairs_passes()),
      train_metrics_(plan.train_metrics),
      graphed_(graphed_parts(plan)),
      list_ranks_(exchanges_lists(plan) ? shard_size(plan) : 0),
      streams_(parameter_streams(plan)),
      casts_(weight_casts(plan)),
      times_(times),
      groups_(plan, cluster) {}

StageTimes Pricing::stage(const Work& work, int index, StageTransfers& transfers) {
  const std::vector<Repeated>& parts = work.parts[static_cast<std::size_t>(index)];
  const std::vector<Kernel>& arrival = work.arrival.forward;
  StageTimes stage;
  if (work.receives_activation(index))
    stage.forward += list(work.arrival, arrival, 1, false, transfers.forward);
  if (work.receives_gradient(index))
    stage.backward_input += list(work.arrival, arrival, 1, false, transfers.backward_input);
  for (const Repeated& part : parts) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const auto repeats = static_cast<double>(part.repeats);
    OpTransfers &input = transfers.backward_input, &weight = transfers.backward_weight;
    stage.forward += list(block, block.forward, repeats, false, transfers.forward);
    stage.backward_input += list(block, block.recompute, repeats, true, input);
    stage.backward_input += list(block, block.backward_input, repeats, false, input);
    stage.backward_weight += list(block, block.backward_weight, repeats, false, weight);
    stage.forward.compute += repeats * casts_s(block, block.forward, casts_.forward);
    stage.backward_input.recompute += repeats * casts_s(block, block.recompute, casts_.again);
    stage.backward_input.compute += repeats * casts_s(block, block.backward_input, casts_.backward);
    stage.forward.compute += repeats * (parameter_streams_s(block, streams_.forward) +
                                        parameter_streams_s(block, streams_.frozen_forward, true));
    stage.backward_input.compute += repeats * parameter_streams_s(block, streams_.backward_input);
    stage.backward_weight.compute += repeats * parameter_streams_s(block, streams_.backward_weight);
    stage.backward_weight.compute += repeats * train_metrics_s(train_metrics_, block, times_);
    OpTransfers& both = transfers.side_by_side;
    stage.side_by_side += side_by_side(block, block.backward_input, block.backward_weight, repeats, both);
    stage.side_by_side += side_by_side(block, block.backward_weight, block.backward_input, repeats, both);
    if (pairs_passes_) add_phases(block, repeats, stage);
  }
  if (!graphs_passes_ && !launch_blocking_) wait_for_results(work, parts, stage);
  if (!graphs_passes_) wait_for_launches(work, index, stage);
  if (list_ranks_ > 0) wait_for_lists(work, parts, stage);
  return stage;
}

Estimate Pricing::time_of(const Block& block, const Kernel& kernel) {
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) return product(block, kernel, *gemm);
  if (const auto* attention = std::get_if<Attention>(&kernel.what)) return in_steps(*attention);
  if (const auto* scan = std::get_if<Scan>(&kernel.what)) {
    const Tensor& first = block.tensors[static_cast<std::size_t>(kernel.reads.front())];
    return times_.scan(*scan, {block.bytes_moved(kernel), first.element_bytes});
  }
  if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) {
    if (*kind != Pointwise::spread_rows && *kind != Pointwise::collect_rows)
      return times(kernel.launches,
                   times_.pointwise(*kind, block.bytes_moved(kernel) / static_cast<double>(kernel.launches)));
    const Tensor& map = block.tensors[static_cast<std::size_t>(kernel.reads.in(Slot::map))];
    const double seconds = local_move_time(cluster_.gpu, *kind, block.bytes_moved(kernel), map.elements);
    return {std::max(profile_.launch_s, seconds), false};
  }
  const auto& collective = std::get<Collective>(kernel.what);
  const CommunicationTime call = call_time(collective);
  return times(collective.calls, {call.total(), call.extrapolated});
}

Estimate Pricing::product(const Block& block, const Kernel& kernel, const Gemm& gemm) {
  const bool in_bf16 = precision_of(block, kernel, precision_) != precision_;
  Estimate time = in_chunks(gemm, in_bf16);
  if (plan_.fp8_scaling == Fp8Scaling::mx && !in_bf16) time.seconds *= profile_.fp8_blocks;
  if (gemm.of_experts && gemm.pass != GemmPass::weight_gradient && kernel.writes.has(Slot::columns))
    time.seconds += bytes_beside(block, kernel, gemm) / (kEpilogue * cluster_.gpu.memory_bandwidth);
  return time;
}

Estimate Pricing::in_chunks(Gemm gemm, bool in_bf16) {
  const std::int64_t chunks = gemm.chunks;
  gemm.m = (gemm.m + chunks - 1) / chunks;
  gemm.chunks = 1;
  Estimate all = times(chunks, times_.gemm(gemm, in_bf16));
  all.seconds *= on_slowest / (1 - share_taken(cluster_.gpu, gemm.sms_left));
  return all;
}

Estimate Pricing::in_steps(Attention attention) {
  const std::int64_t steps = attention.steps;
  attention.steps = 1;
  Estimate all = times(steps, times_.attention(attention));
  all.seconds *= on_slowest;
  return all;
}

Estimate Pricing::times(std::int64_t count, const Estimate& one) {
  return {static_cast<double>(count) * one.seconds, one.extrapolated};
}

double Pricing::lost(const Collective& collective, const Kernel& beside, double call_s) {
  const GroupShape& group = groups_.of(collective.group);
  const double memory_s = memory_taken_s(cluster_.gpu, group.members, collective.op, collective.bytes);
  if (is_row_exchange(collective.op))
    return share_lost({share_taken(cluster_.gpu, exchange_sms(plan_, group)), memory_s}, call_s);
  const auto* gemm = std::get_if<Gemm>(&beside.what);
  if (collective.op == CollectiveOp::send_receive || (gemm && gemm->sms_left > 0))
    return share_lost({0, memory_s}, call_s);
  if (chunks_of(beside) > 1)
    return share_lost({share_taken(cluster_.gpu, kUserBufferBlocks), memory_s}, call_s);
  return share_lost(taken_by(profile_, cluster_.gpu, group, collective.op, collective.bytes,
                             share_taken(profile_, cluster_, group)),
                    call_s);
}

double Pricing::parameter_streams_s(const Block& block, const std::vector<double>& bytes_of_each,
                                    bool of_frozen) {
  double seconds = 0;
  for (const Tensor& tensor : block.tensors) {
    const bool is_trained = tensor.role == TensorRole::parameter || tensor.role == TensorRole::tied;
    if (of_frozen ? tensor.role != TensorRole::frozen : !is_trained) continue;
    for (const double bytes : bytes_of_each)
      seconds += times_.pointwise(Pointwise::add, bytes * tensor.elements).seconds;
  }
  return seconds;
}

double Pricing::casts_s(const Block& block, const std::vector<Kernel>& kernels,
                        const std::vector<double>& bytes_of_each) {
  const double elements = bytes_of_each.empty() ? 0 : cast_elements(block, kernels, precision_);
  if (elements == 0) return 0;
  const Pointwise kind = precision_ == Precision::fp4 ? Pointwise::quantize_fp4 : Pointwise::quantize;
  double seconds = 0;
  for (const double bytes : bytes_of_each) seconds += times_.pointwise(kind, bytes * elements).seconds;
  return seconds;
}

void Pricing::wait_for_results(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage) {
  for (const Repeated& part : parts) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const auto repeats = static_cast<double>(part.repeats);
    const double forward = repeats * stalled_s(block, block.forward);
    const double again = repeats * stalled_s(block, block.recompute);
    stage.forward.compute += forward;
    stage.backward_input.compute += again;
    launch_bound_s += forward + again;
  }
}

double Pricing::stalled_s(const Block& block, const std::vector<Kernel>& kernels) {
  if (std::none_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return kernel.host_waits; }))
    return 0;
  std::vector<double> seconds;
  for (const Kernel& kernel : kernels)
    seconds.push_back(time_of(block, kernel).seconds - hidden(block, kernel, kernels).total());
  return stalls_s(profile_, kernels, seconds, graphed_);
}

void Pricing::wait_for_launches(const Work& work, int index, StageTimes& stage) {
  const auto launches = [this](const std::vector<Kernel>& kernels) {
    return launches_s(profile_, kernels, graphed_);
  };
  const double arrival = launches(work.arrival.forward);
  double forward = work.receives_activation(index) ? arrival : 0;
  double input = work.receives_gradient(index) ? arrival : 0, weight = 0;
  for (const Repeated& part : work.parts[static_cast<std::size_t>(index)]) {
    const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
    const auto repeats = static_cast<double>(part.repeats);
    forward += repeats * launches(block.forward);
    input += repeats * (launches(block.recompute) + launches(block.backward_input));
    weight += repeats * (launches(block.backward_weight) + accumulations_s(profile_, block));
  }
  const auto wait = [this](double of_host, double of_gpu) {
    return launch_blocking_ ? of_host : std::max(0.0, of_host - of_gpu);
  };
  const double both =
      stage.backward_input.total() + stage.backward_weight.total() + stage.side_by_side.total();
  const double of_input = wait(input, stage.backward_input.total());
  const double of_weight = wait(weight, stage.backward_weight.total());
  launch_bound_s += wait(forward, stage.forward.total()) + wait(input + weight, both);
  const double of_forward = wait(forward, stage.forward.total());
  const auto add = [this](TimeParts& parts, double seconds) {
    parts.compute += seconds;
    if (!launch_blocking_) parts.waits += seconds;
  };
  add(stage.forward, of_forward);
  add(stage.side_by_side, wait(input + weight, both) - of_input - of_weight);
  add(stage.backward_input, of_input);
  add(stage.backward_weight, of_weight);
}

void Pricing::wait_for_lists(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage) {
  for (const Repeated& part : parts) {
    const Weights weights = weights_of(work.blocks[static_cast<std::size_t>(part.block)]);
    const double bytes = weights.bytes / std::max(1, weights.all);
    std::optional<double> beside_s;
    if (prefetches_ && weights.gathered_ahead())
      beside_s = call_time({CollectiveOp::all_gather, CommGroup::shards, bytes}).total();
    const double wait =
        static_cast<double>(part.repeats) * list_wait_s(profile_, cluster_, list_ranks_, bytes, beside_s);
    stage.forward.compute += wait * weights.all;
    stage.backward_input.compute += wait * (weights.all + weights.dropped);
    launch_bound_s += wait * (2 * weights.all + weights.dropped);
  }
}

CommunicationTime Pricing::call_time(const Collective& collective) {
  if (is_row_exchange(collective.op))
    return exchange_time(plan_, cluster_, collective, groups_.of(collective.group));
  return times_.collective(cluster_, collective.op, collective.bytes, groups_.of(collective.group));
}

double Pricing::call_far_bytes(const Collective& collective) {
  const GroupShape& group = groups_.of(collective.group);
  return is_row_exchange(collective.op) ? exchange_far_bytes(plan_, collective, group)
                                        : far_bytes(collective.op, collective.bytes, group);
}

Pricing::Hidden Pricing::hidden(const Block& block, const Kernel& kernel,
                                const std::vector<Kernel>& kernels) {
  const auto* collective = std::get_if<Collective>(&kernel.what);
  if (collective == nullptr) return {};
  const Kernel* beside = nullptr;
  double chunk_s = 0;
  for (const Kernel& other : kernels) {
    if (!runs_beside(kernel, other)) continue;
    chunk_s += time_of(block, other).seconds / static_cast<double>(chunks_of(other));
    beside = &other;
  }
  if (beside == nullptr) return {};
  const double call_s = call_time(*collective).total();
  const double hidden_s = std::min(call_s * (1 - lost(*collective, *beside, call_s)), chunk_s);
  return {static_cast<double>(collective->calls - kernel.overlap.exposed_calls), hidden_s,
          call_s + chunk_s - hidden_s};
}

Transfers Pricing::transfers_of(const Collective& collective, const Hidden& hidden) {
  const double transfer_s = call_time(collective).transfer_s;
  const double bytes = call_far_bytes(collective);
  const auto calls = static_cast<double>(collective.calls), exposed = calls - hidden.calls;
  return {exposed * transfer_s, hidden.calls * transfer_s, hidden.calls * hidden.window_s, calls,
          exposed * bytes,      hidden.calls * bytes};
}

TimeParts Pricing::side_by_side(const Block& block, const std::vector<Kernel>& half,
                                const std::vector<Kernel>& other, double repeats, OpTransfers& transfers) {
  TimeParts saved;
  for (const Kernel& kernel : half) {
    const Hidden of_call = hidden(block, kernel, other);
    if (of_call.calls == 0) continue;
    part_of(saved, kernel, false) -= repeats * of_call.total();
    const auto& collective = std::get<Collective>(kernel.what);
    Transfers moved = transfers_of(collective, of_call);
    moved += -1.0 * transfers_of(collective, {});
    transfers[inner_group(collective)] += repeats * moved;
  }
  return saved;
}

TimeParts Pricing::list(const Block& block, const std::vector<Kernel>& kernels, double repeats,
                        bool recompute, OpTransfers& transfers) {
  TimeParts parts;
  for (const Kernel& kernel : kernels) {
    const Estimate estimate = time_of(block, kernel);
    const Hidden of_call = hidden(block, kernel, kernels);
    const double seconds = repeats * (estimate.seconds - of_call.total());
    part_of(parts, kernel, recompute) += seconds;
    priced_s += seconds;
    if (estimate.extrapolated) extrapolated_s += seconds;
    if (kernel.unmeasured) unmeasured_s += seconds;
    if (const auto* collective = std::get_if<Collective>(&kernel.what)) {
      transfers[inner_group(*collective)] += repeats * transfers_of(*collective, of_call);
    }
  }
  return parts;
}

}  // namespace rehearse
