#include "calibrate/timing/jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "cost/collectives.h"
#include "cost/curves.h"
#include "cost/gemm_curve.h"
#include "plan/ranks.h"
#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

SampleKey key_of(Gemm gemm, const std::string& precision) {
  gemm.m = (gemm.m + gemm.chunks - 1) / gemm.chunks;
  return {SampleKey::Table::gemm,
          gemm_key(precision, gemm_kind(gemm, precision)),
          {static_cast<double>(gemm.m), static_cast<double>(gemm.n), static_cast<double>(gemm.k),
           static_cast<double>(gemm.batch)}};
}

SampleKey key_of(const Attention& attention) {
  return {SampleKey::Table::attention,
          "",
          {static_cast<double>(attention.head_dim), static_cast<double>(looped_keys(attention)),
           attention.causal ? 1.0 : 0.0, attention.backward ? 1.0 : 0.0}};
}

constexpr const char* kOptimizer = "optimizer";  // block of the step's kernels

}  // namespace

bool is_of_step(const Jobs& jobs, const KernelJob& job) {
  return jobs.blocks[job.block].name == kOptimizer;
}

std::int64_t heads_of(const Attention& attention) {
  return attention.batch * attention.heads;
}

namespace {

// What makes two kernels of one key different: where they stand, and the sizes of their tensors.
std::vector<double> signature(const Block& block, const Kernel& kernel, Phase phase) {
  std::vector<double> all = {static_cast<double>(phase == Phase::recompute ? Phase::forward : phase)};
  for (const auto* ids : {&kernel.reads, &kernel.writes}) {
    all.push_back(static_cast<double>(ids->size()));
    for (const TensorId id : *ids) all.push_back(block.tensors[static_cast<std::size_t>(id)].bytes());
  }
  return all;
}

// Whether a kernel of ours is there to time; others stream as "add" or "permute" do, or are a library's.
bool has_kernel(Pointwise kind) {
  switch (kind) {
    case Pointwise::eager:
    case Pointwise::scatter_add:
    case Pointwise::rearrange:
    case Pointwise::spread_rows:
    case Pointwise::collect_rows:
      return false;
    default:
      return true;
  }
}

class Collector {
 public:
  explicit Collector(Jobs& jobs) : jobs_(jobs) {}

  void add(const Model& model, const Plan& plan) {
    jobs_.plans.push_back({model, plan});
    const Work work = make_work(model, plan);
    std::vector<double> repeats(work.blocks.size(), 0);
    for (const std::vector<Repeated>& part : work.parts)
      for (const Repeated& repeated : part)
        repeats[static_cast<std::size_t>(repeated.block)] += static_cast<double>(repeated.repeats);
    for (std::size_t i = 0; i < work.blocks.size(); ++i) add_block(work.blocks[i], repeats[i]);
    for (int rank = 0; rank < plan.pp; ++rank) add_step(work, rank);
    add_messages(work);
  }

  void finish() {
    for (auto& [key, same] : kernels_) {
      for (auto& [signature, job] : same) jobs_.kernels.push_back(std::move(job));
    }
    jobs_.messages.assign(messages_.begin(), messages_.end());
  }

 private:
  const Plan& plan() const { return jobs_.plans.back().plan; }

  void add_block(const Block& block, double repeats) {
    jobs_.blocks.push_back(block);
    repeats_ = repeats;
    const auto add_list = [&](const std::vector<Kernel>& kernels, Phase phase) {
      for (const Kernel& kernel : kernels) add_kernel(block, kernel, phase);
    };
    add_list(block.forward, Phase::forward);
    add_list(block.recompute, Phase::recompute);
    add_list(block.backward_input, Phase::backward_input);
    add_list(block.backward_weight, Phase::backward_weight);
  }

  void add_kernel(const Block& block, const Kernel& kernel, Phase phase) {
    SampleKey key;
    if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) {
      key = key_of(*gemm, to_string(precision_of(block, kernel, plan().precision)));
    } else if (const auto* attention = std::get_if<Attention>(&kernel.what)) {
      key = key_of(*attention);
    } else if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) {
      if (!has_kernel(*kind)) return;
      key = {SampleKey::Table::stream, curve_name(*kind), {block.bytes_moved(kernel)}};
    } else if (const auto* scan = std::get_if<Scan>(&kernel.what)) {
      key = {SampleKey::Table::stream, curve_name(*scan), {block.bytes_moved(kernel)}};
    } else {
      return add_collective(std::get<Collective>(kernel.what));
    }
    std::map<std::vector<double>, KernelJob>& same = kernels_[key];
    if (const auto* attention = std::get_if<Attention>(&kernel.what); attention != nullptr && !same.empty()) {
      // Of what differs in its heads only, that which keeps a GPU busiest: how fewer fill it the cost model
      // knows.
      const std::int64_t known = heads_of(std::get<Attention>(same.begin()->second.kernel.what));
      if (known > heads_of(*attention)) return;
      if (known < heads_of(*attention)) same.clear();
    }
    const KernelJob job{key, jobs_.blocks.size() - 1, kernel, phase, jobs_.plans.size() - 1};
    same.try_emplace(signature(block, kernel, phase), job).first->second.uses += repeats_;
  }

  void add_step(const Work& work, int rank) {
    double parameters = 0;
    for (int stage = 0; stage < plan().stages(); ++stage) {
      if (pipeline_rank_of(stage, plan()) != rank) continue;
      const double experts = work.expert_parameters(stage), dense = work.parameters(stage) - experts;
      parameters += dense / shard_size(plan()) + experts / expert_shard_size(plan());
    }
    if (plan().offload == Offload::optimizer || parameters == 0) return;
    Block scratch;
    const std::vector<Kernel> kernels = optimizer_kernels(parameters, plan(), scratch);
    scratch.name = kOptimizer;
    repeats_ = 1;
    jobs_.blocks.push_back(scratch);
    for (const Kernel& kernel : kernels) add_kernel(jobs_.blocks.back(), kernel, Phase::forward);
  }

  void add_message(CollectiveOp op, std::size_t members, double bytes) {
    if (members < 2 || bytes < 1) return;
    for (const double size : {1024.0, 65536.0, 1048576.0, bytes}) {
      messages_.insert({op, static_cast<int>(members), size});
    }
  }

  void add_collective(const Collective& collective) {
    if (is_row_exchange(collective.op)) return;  // a library's of its own, which is not timed
    const int members =
        collective.op == CollectiveOp::send_receive ? 2 : group_size(collective.group, plan());
    add_message(collective.op, static_cast<std::size_t>(members), collective.bytes);
  }

  void add_messages(const Work& work) {
    if (plan().pp > 1) add_message(CollectiveOp::send_receive, 2, work.boundary_bytes);
    const int replicas = plan().dp * plan().cp;
    const bool one_group = plan().edp() == replicas;
    for (int stage = 0; stage < plan().stages(); ++stage) {
      const double experts = work.expert_parameters(stage), dense = work.parameters(stage) - experts;
      add_state(replicas, one_group ? dense + experts : dense);
      if (!one_group) add_state(plan().edp(), experts);
    }
    add_tied();
  }

  // What the ranks that hold the same parameters exchange.
  void add_state(int holders, double parameters) {
    const auto members = static_cast<std::size_t>(holders);
    const CollectiveOp reduction = plan().zero > 0 ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce;
    add_message(reduction, members, parameters * gradient_wire_bytes(plan()));
    if (plan().zero > 0) add_message(CollectiveOp::all_gather, members, parameters * parameter_bytes(plan()));
  }

  // The gradient of the embedding that the first and the last stage share.
  void add_tied() {
    const Model& model = jobs_.plans.back().model;
    if (!model.shares_embedding()) return;
    if (pipeline_rank_of(0, plan()) == pipeline_rank_of(plan().stages() - 1, plan())) return;
    const std::int64_t rows = (model.vocab + plan().tp - 1) / plan().tp;
    add_message(CollectiveOp::all_reduce, 2,
                static_cast<double>(rows * model.hidden) * gradient_wire_bytes(plan()));
  }

  Jobs& jobs_;
  double repeats_ = 1;  // of the block at hand
  std::map<SampleKey, std::map<std::vector<double>, KernelJob>> kernels_;
  std::set<MessageJob> messages_;
};

}  // namespace

Jobs jobs_of(const std::vector<Jobs::Shaped>& all) {
  Jobs jobs;
  Collector collector(jobs);
  for (const Jobs::Shaped& shaped : all) collector.add(shaped.model, shaped.plan);
  collector.finish();
  return jobs;
}

Jobs jobs_of(const Model& model, const Plan& plan) {
  return jobs_of({{model, plan}});
}

namespace {

// Whether one of the job's operation, members and bytes is such.
template <typename Which>
bool any_message(const Profile& profile, const MessageJob& job, const Which& which) {
  if (!profile.measurement) return false;
  const std::vector<MessageSample>& known = profile.measurement->messages;
  return std::any_of(known.begin(), known.end(), [&](const MessageSample& sample) {
    return sample.op == message_name(job.op) && sample.members == job.members && sample.bytes == job.bytes &&
           which(sample);
  });
}

}  // namespace

bool has_sample(const Profile& profile, const SampleKey& key) {
  const std::vector<double>& size = key.size;
  if (key.table == SampleKey::Table::gemm) {
    const auto found = profile.gemm.find(key.name);
    return found != profile.gemm.end() &&
           std::any_of(found->second.begin(), found->second.end(), [&](const GemmSample& sample) {
             return size == std::vector<double>{static_cast<double>(sample.m), static_cast<double>(sample.n),
                                                static_cast<double>(sample.k),
                                                static_cast<double>(sample.batch)};
           });
  }
  if (key.table == SampleKey::Table::attention) {
    return std::any_of(
        profile.attention.begin(), profile.attention.end(), [&](const AttentionSample& sample) {
          return size == std::vector<double>{static_cast<double>(sample.head_dim),
                                             static_cast<double>(sample.seq), sample.causal ? 1.0 : 0.0,
                                             sample.backward ? 1.0 : 0.0};
        });
  }
  const auto found = profile.stream.find(key.name);
  return found != profile.stream.end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const StreamSample& sample) { return sample.bytes == size[0]; });
}

bool has_sample(const Profile& profile, const MessageJob& job) {
  return any_message(profile, job, [&](const MessageSample& sample) { return sample.nodes == job.nodes; });
}

bool has_sample_anywhere(const Profile& profile, const MessageJob& job) {
  return any_message(profile, job, [](const MessageSample&) { return true; });
}

std::string to_string(const SampleKey& key) {
  const std::vector<double>& size = key.size;
  switch (key.table) {
    case SampleKey::Table::gemm:
      return fmt::format("gemm {} {} x {} x {}{}", key.name, size[0], size[1], size[2],
                         size[3] > 1 ? fmt::format(", {} at once", size[3]) : "");
    case SampleKey::Table::attention:
      return fmt::format("attention {} wide, {} keys, {}, {}", size[0], size[1],
                         size[2] > 0 ? "causal" : "full", size[3] > 0 ? "backward" : "forward");
    case SampleKey::Table::stream:
      break;
  }
  return fmt::format("{} {}", key.name, format_bytes(size[0]));
}

std::string to_string(const MessageJob& job) {
  const std::string ranks = job.nodes > 1 ? fmt::format("{} ranks on {} machines", job.members, job.nodes)
                                          : fmt::format("{} ranks", job.members);
  return fmt::format("{} of {} over {}", message_name(job.op), format_bytes(job.bytes), ranks);
}

}  // namespace rehearse
