#include "cost/price.h"

#include <algorithm>
#include <optional>

#include "cost/collectives.h"
#include "cost/contention.h"
#include "cost/host_launches.h"
#include "cost/inner_groups.h"
#include "cost/kernel_times.h"
#include "cost/lists.h"
#include "cost/offload.h"
#include "cost/parameter_streams.h"
#include "cost/slowest_gpu.h"
#include "cost/train_metrics.h"
#include "plan/fp8.h"
#include "plan/owners.h"
#include "plan/sharding.h"
#include "plan/stages.h"
#include "plan/weights.h"

namespace rehearse {

namespace {

// Of a reduce-scatter that Transformer Engine's user buffers run beside the chunks of a GEMM
// (pytorch/module/base.py, initialize_ub: num_sm).
constexpr double kUserBufferBlocks = 16;

// Where a kernel's seconds are booked.
double& part_of(TimeParts& parts, const Kernel& kernel, bool recompute) {
  if (const auto* collective = std::get_if<Collective>(&kernel.what)) {
    if (collective->axis == Axis::cp) return parts.cp;
    return collective->axis == Axis::ep ? parts.ep : parts.tp;
  }
  return recompute ? parts.recompute : parts.compute;
}

std::size_t inner_group(const Collective& collective) {
  InnerGroup group = collective.of_experts ? InnerGroup::expert_tensor : InnerGroup::tensor;
  if (collective.axis == Axis::cp) group = InnerGroup::context;
  if (collective.axis == Axis::ep) group = InnerGroup::expert;
  return static_cast<std::size_t>(group);
}

// Adds up stages; counts what it booked and how much of that was extrapolated.
class Pricing {
 public:
  Pricing(const Plan& plan, const Cluster& cluster, const Profile& profile, KernelTimes& times)
      : on_slowest(slowest_gpu(profile, cluster, plan.gpus())),
        cluster_(cluster),
        profile_(profile),
        precision_(plan.precision),
        cuda_graph_(plan.cuda_graph),
        launch_blocking_(plan.launch_blocking),
        prefetches_(plan.prefetch > 0),
        train_metrics_(plan.train_metrics),
        list_ranks_(exchanges_lists(plan) ? shard_size(plan) : 0),
        streams_(parameter_streams(plan)),
        times_(times),
        groups_(plan, cluster) {}

  StageTimes stage(const Work& work, const std::vector<Repeated>& parts, StageTransfers& transfers) {
    StageTimes stage;
    for (const Repeated& part : parts) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      const auto repeats = static_cast<double>(part.repeats);
      OpTransfers &input = transfers.backward_input, &weight = transfers.backward_weight;
      stage.forward += list(block, block.forward, repeats, false, transfers.forward);
      stage.backward_input += list(block, block.recompute, repeats, true, input);
      stage.backward_input += list(block, block.backward_input, repeats, false, input);
      stage.backward_weight += list(block, block.backward_weight, repeats, false, weight);
      stage.forward.compute += repeats * parameter_streams_s(block, streams_.forward);
      stage.backward_input.compute += repeats * parameter_streams_s(block, streams_.backward_input);
      stage.backward_weight.compute += repeats * parameter_streams_s(block, streams_.backward_weight);
      stage.backward_weight.compute += repeats * train_metrics_s(train_metrics_, block, times_);
      OpTransfers& both = transfers.side_by_side;
      stage.side_by_side += side_by_side(block, block.backward_input, block.backward_weight, repeats, both);
      stage.side_by_side += side_by_side(block, block.backward_weight, block.backward_input, repeats, both);
    }
    if (!cuda_graph_ && !launch_blocking_) wait_for_results(work, parts, stage);
    if (!cuda_graph_) wait_for_launches(work, parts, stage);
    if (list_ranks_ > 0) wait_for_lists(work, parts, stage);
    return stage;
  }

  Estimate time_of(const Block& block, const Kernel& kernel) {
    if (const auto* gemm = std::get_if<Gemm>(&kernel.what))
      return in_chunks(*gemm, precision_of(block, kernel, precision_) != precision_);
    if (const auto* attention = std::get_if<Attention>(&kernel.what)) return in_steps(*attention);
    if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) {
      return times_.pointwise(*kind, block.bytes_moved(kernel));
    }
    const auto& collective = std::get<Collective>(kernel.what);
    const CommunicationTime call = call_time(collective);
    return times(collective.calls, {call.total(), call.extrapolated});
  }

  const double on_slowest;  // times that a product takes on the job's slowest GPU
  double priced_s = 0, extrapolated_s = 0, launch_bound_s = 0;

 private:
  Estimate in_chunks(Gemm gemm, bool in_bf16) {
    const std::int64_t chunks = gemm.chunks;
    gemm.m = (gemm.m + chunks - 1) / chunks;
    gemm.chunks = 1;
    Estimate all = times(chunks, times_.gemm(gemm, in_bf16));
    all.seconds *= on_slowest / (1 - share_taken(cluster_.gpu, gemm.sms_left));
    return all;
  }

  Estimate in_steps(Attention attention) {
    const std::int64_t steps = attention.steps;
    attention.steps = 1;
    Estimate all = times(steps, times_.attention(attention));
    all.seconds *= on_slowest;
    return all;
  }

  static Estimate times(std::int64_t count, const Estimate& one) {
    return {static_cast<double>(count) * one.seconds, one.extrapolated};
  }

  // What a kernel loses beside a call. Sends between GPUs of a node are left to copy engines, those between
  // nodes hold two blocks: neither counts as blocks; nor do multiprocessors that it does without anyway.
  double lost(const Collective& collective, const Kernel& beside, double call_s) {
    const GroupShape& group = groups_.of(collective);
    const UnderWay call{collective.op, collective.bytes, call_s};
    const auto* gemm = std::get_if<Gemm>(&beside.what);
    if (collective.op == CollectiveOp::send_receive || (gemm && gemm->sms_left > 0))
      return share_lost(cluster_.gpu, group.members, call, 0);
    if (chunks_of(beside) > 1)
      return share_lost(cluster_.gpu, group.members, call, share_taken(cluster_.gpu, kUserBufferBlocks));
    return share_lost(profile_, cluster_.gpu, group, call, share_taken(profile_, cluster_, group));
  }

  // Kernels that no op of the Work names.
  double parameter_streams_s(const Block& block, const std::vector<double>& bytes_of_each) {
    double seconds = 0;
    for (const Tensor& tensor : block.tensors) {
      if (tensor.role != TensorRole::parameter && tensor.role != TensorRole::tied) continue;
      for (const double bytes : bytes_of_each)
        seconds += times_.pointwise(Pointwise::add, bytes * tensor.elements).seconds;
    }
    return seconds;
  }

  // Where the host waits for what a kernel writes, the GPU waits for the host after it.
  void wait_for_results(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage) {
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

  double stalled_s(const Block& block, const std::vector<Kernel>& kernels) {
    if (std::none_of(kernels.begin(), kernels.end(), [](const Kernel& kernel) { return kernel.host_waits; }))
      return 0;
    std::vector<double> seconds;
    for (const Kernel& kernel : kernels)
      seconds.push_back(time_of(block, kernel).seconds - hidden(block, kernel, kernels).total());
    return stalls_s(profile_, kernels, seconds);
  }

  // The host launches one kernel after the other: an op lasts at least as long as that takes, or so much
  // longer where the host waits for each kernel before it goes on.
  void wait_for_launches(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage) {
    double forward = 0, input = 0, weight = 0;
    for (const Repeated& part : parts) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      const auto repeats = static_cast<double>(part.repeats);
      forward += repeats * launches_s(profile_, block.forward);
      input += repeats * (launches_s(profile_, block.recompute) + launches_s(profile_, block.backward_input));
      weight += repeats * (launches_s(profile_, block.backward_weight) + accumulations_s(profile_, block));
    }
    const auto wait = [this](double launches, double kernels) {
      return launch_blocking_ ? launches : std::max(0.0, launches - kernels);
    };
    const double both =
        stage.backward_input.total() + stage.backward_weight.total() + stage.side_by_side.total();
    const double of_input = wait(input, stage.backward_input.total());
    const double of_weight = wait(weight, stage.backward_weight.total());
    launch_bound_s += wait(forward, stage.forward.total()) + wait(input + weight, both);
    stage.forward.compute += wait(forward, stage.forward.total());
    stage.side_by_side.compute += wait(input + weight, both) - of_input - of_weight;
    stage.backward_input.compute += of_input;
    stage.backward_weight.compute += of_weight;
  }

  // Before each gather of a list, DeepSpeed waits until the GPU has nothing left to do (_allgather_param).
  void wait_for_lists(const Work& work, const std::vector<Repeated>& parts, StageTimes& stage) {
    for (const Repeated& part : parts) {
      const Weights weights = weights_of(work.blocks[static_cast<std::size_t>(part.block)]);
      const double bytes = weights.bytes / std::max(1, weights.all);
      std::optional<double> beside_s;
      if (prefetches_ && weights.gathered_ahead())
        beside_s = call_time({CollectiveOp::all_gather, Axis::dp, bytes}).total();
      const double wait =
          static_cast<double>(part.repeats) * list_wait_s(profile_, cluster_, list_ranks_, bytes, beside_s);
      stage.forward.compute += wait * weights.all;
      stage.backward_input.compute += wait * (weights.all + weights.dropped);
      launch_bound_s += wait * (2 * weights.all + weights.dropped);
    }
  }

  CommunicationTime call_time(const Collective& collective) {
    return times_.collective(cluster_, collective.op, collective.bytes, groups_.of(collective));
  }

  // Calls of a collective that run beside a chunk each, and seconds of one of those.
  struct Hidden {
    double calls = 0;
    double hidden_s = 0;
    double window_s = 0;  // until the call and its chunk have ended
    double total() const { return calls * hidden_s; }
  };

  // What the kernel that a collective names hides of it, when that stands in `kernels`: call by call beside
  // chunk by chunk, which has only what the call leaves.
  Hidden hidden(const Block& block, const Kernel& kernel, const std::vector<Kernel>& kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective == nullptr || kernel.overlap.with.empty()) return {};
    const auto beside = std::find_if(kernels.begin(), kernels.end(), [&kernel](const Kernel& other) {
      return other.name == kernel.overlap.with;
    });
    if (beside == kernels.end()) return {};
    const double call_s = call_time(*collective).total();
    const double chunk_s = time_of(block, *beside).seconds / static_cast<double>(chunks_of(*beside));
    const double hidden_s = std::min(call_s * (1 - lost(*collective, *beside, call_s)), chunk_s);
    return {static_cast<double>(collective->calls - kernel.overlap.exposed_calls), hidden_s,
            call_s + chunk_s - hidden_s};
  }

  // The links that a collective holds meanwhile.
  Transfers transfers_of(const Collective& collective, const Hidden& hidden) {
    const double transfer_s = call_time(collective).transfer_s;
    const auto calls = static_cast<double>(collective.calls);
    return {(calls - hidden.calls) * transfer_s, hidden.calls * transfer_s, hidden.calls * hidden.window_s,
            calls};
  }

  // What op B saves over I and W one after the other: collectives of `half` beside kernels of `other`.
  TimeParts side_by_side(const Block& block, const std::vector<Kernel>& half,
                         const std::vector<Kernel>& other, double repeats, OpTransfers& transfers) {
    TimeParts saved;
    for (const Kernel& kernel : half) {
      const Hidden of_call = hidden(block, kernel, other);
      if (of_call.calls == 0) continue;
      part_of(saved, kernel, false) -= repeats * of_call.total();
      const auto& collective = std::get<Collective>(kernel.what);
      const Transfers beside = transfers_of(collective, of_call), alone = transfers_of(collective, {});
      transfers[inner_group(collective)] += {repeats * (beside.exposed_s - alone.exposed_s),
                                             repeats * beside.beside_s, repeats * beside.window_s, 0};
    }
    return saved;
  }

  TimeParts list(const Block& block, const std::vector<Kernel>& kernels, double repeats, bool recompute,
                 OpTransfers& transfers) {
    TimeParts parts;
    for (const Kernel& kernel : kernels) {
      const Estimate estimate = time_of(block, kernel);
      const Hidden of_call = hidden(block, kernel, kernels);
      const double seconds = repeats * (estimate.seconds - of_call.total());
      part_of(parts, kernel, recompute) += seconds;
      priced_s += seconds;
      if (estimate.extrapolated) extrapolated_s += seconds;
      if (const auto* collective = std::get_if<Collective>(&kernel.what)) {
        const Transfers once = transfers_of(*collective, of_call);
        transfers[inner_group(*collective)] += {repeats * once.exposed_s, repeats * once.beside_s,
                                                repeats * once.window_s, repeats * once.calls};
      }
    }
    return parts;
  }

  const Cluster& cluster_;
  const Profile& profile_;
  Precision precision_;
  bool cuda_graph_, launch_blocking_, prefetches_;
  int train_metrics_, list_ranks_;  // of a gather of lists; 0: there are none
  ParameterStreams streams_;
  KernelTimes& times_;
  InnerGroups groups_;
};

// Seconds of the optimizer step, by pipeline rank: that of the rank which steps most.
std::vector<TimeParts> step_times(const Work& work, const Plan& plan, const Cluster& cluster,
                                  Pricing& pricing) {
  std::vector<double> shards(static_cast<std::size_t>(plan.pp), 0);
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    shards[static_cast<std::size_t>(pipeline_rank_of(stage, plan))] +=
        stepped_dense(work, plan, stage) + stepped_experts(work, plan, stage);
  std::vector<TimeParts> steps;
  for (const double shard : shards) {
    const bool at_host = plan.offload == Offload::optimizer;
    double& seconds = steps.emplace_back().optimizer;
    if (at_host) seconds = cpu_step_s(cluster, plan, shard);
    Block scratch;
    for (const Kernel& kernel :
         at_host ? clipping_kernels(shard, plan, scratch) : optimizer_kernels(shard, plan, scratch))
      seconds += pricing.time_of(scratch, kernel).seconds;
  }
  if (!exchanges_lists(plan)) return steps;
  for (int stage = 0; stage < static_cast<int>(work.parts.size()); ++stage)
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)])
      steps[static_cast<std::size_t>(pipeline_rank_of(stage, plan))].optimizer +=
          static_cast<double>(part.repeats) *
          lists_apart_s(shard_size(plan), weights_of(work.blocks[static_cast<std::size_t>(part.block)]).kept);
  return steps;
}

// The stages, those that run the same blocks priced once.
void price_stages(const Work& work, Pricing& pricing, Prices& prices) {
  struct Priced {
    const std::vector<Repeated>* parts;
    StageTimes times;
    StageTransfers transfers;
    double priced_s, extrapolated_s, launch_bound_s;
  };
  std::vector<Priced> known;
  for (const auto& parts : work.parts) {
    auto like =
        std::find_if(known.begin(), known.end(), [&](const Priced& other) { return *other.parts == parts; });
    if (like == known.end()) {
      pricing.priced_s = pricing.extrapolated_s = pricing.launch_bound_s = 0;
      StageTransfers transfers;
      const StageTimes times = pricing.stage(work, parts, transfers);
      known.push_back(
          {&parts, times, transfers, pricing.priced_s, pricing.extrapolated_s, pricing.launch_bound_s});
      like = std::prev(known.end());
    }
    prices.times.stages.push_back(like->times);
    prices.transfers.push_back(like->transfers);
    prices.priced_s += like->priced_s;
    prices.extrapolated_s += like->extrapolated_s;
    prices.launch_bound_s += like->launch_bound_s;
  }
}

}  // namespace

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile,
             KernelTimes& times) {
  Pricing pricing(plan, cluster, profile, times);
  Prices prices;
  price_stages(work, pricing, prices);
  prices.slowest_gpu = pricing.on_slowest;
  prices.times.step = step_times(work, plan, cluster, pricing);
  return prices;
}

std::vector<TimeParts> price_steps(const Work& work, const Plan& plan, const Cluster& cluster,
                                   const Profile& profile, KernelTimes& times) {
  Pricing pricing(plan, cluster, profile, times);
  return step_times(work, plan, cluster, pricing);
}

Prices price(const Work& work, const Plan& plan, const Cluster& cluster, const Profile& profile) {
  KernelTimes times(profile, cluster.gpu, to_string(plan.precision));
  return price(work, plan, cluster, profile, times);
}

}  // namespace rehearse
