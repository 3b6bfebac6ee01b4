#include "calibrate/timing/jobs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "cost/collectives.h"
#include "cost/curves.h"
#include "cost/gemm_curve.h"
#include "plan/messages.h"
#include "plan/owners.h"
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

}  // namespace

bool is_of_step(const Jobs& jobs, const KernelJob& job) {
  return jobs.blocks[job.block].role == BlockRole::optimizer;
}

std::int64_t heads_of(const Attention& attention) {
  return attention.batch * attention.heads;
}

namespace {

// Distinguishes two kernels of one key: by their place, and by the sizes of their tensors.
std::vector<double> signature(const Block& block, const Kernel& kernel, Phase phase) {
  std::vector<double> all = {static_cast<double>(phase == Phase::recompute ? Phase::forward : phase)};
  for (const auto* ids : {&kernel.reads, &kernel.writes}) {
    all.push_back(static_cast<double>(ids->size()));
    for (const TensorId id : *ids) all.push_back(block.tensors[static_cast<std::size_t>(id)].bytes());
  }
  return all;
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
    for (const StepMessage& message : step_messages(work, model, plan)) add_message(message.what);
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
    const KernelSupport support = support_of(block, kernel, plan().precision);
    if (!support.timed && !support.imported) return;
    SampleKey key;
    if (const auto* gemm = std::get_if<Gemm>(&kernel.what)) {
      key = key_of(*gemm, to_string(precision_of(block, kernel, plan().precision)));
    } else if (const auto* attention = std::get_if<Attention>(&kernel.what)) {
      key = key_of(*attention);
    } else if (const auto* kind = std::get_if<Pointwise>(&kernel.what)) {
      key = {SampleKey::Table::stream, curve_name(*kind), {block.bytes_moved(kernel)}};
    } else if (const auto* scan = std::get_if<Scan>(&kernel.what)) {
      key = {SampleKey::Table::stream, curve_name(*scan), {block.bytes_moved(kernel)}};
    } else {
      return;  // a message
    }
    std::map<std::vector<double>, KernelJob>& same = kernels_[key];
    if (const auto* attention = std::get_if<Attention>(&kernel.what); attention != nullptr && !same.empty()) {
      // Of kernels that differ only in heads, keep the one that fills a GPU best. The cost model knows the
      // effect of fewer heads.
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
      parameters += stepped_dense(work, plan(), stage) + stepped_experts(work, plan(), stage);
    }
    if (plan().offload == Offload::optimizer || parameters == 0) return;
    Block scratch;
    const std::vector<Kernel> kernels = optimizer_kernels(parameters, plan(), scratch);
    scratch.role = BlockRole::optimizer;
    scratch.name = "optimizer";
    repeats_ = 1;
    jobs_.blocks.push_back(scratch);
    for (const Kernel& kernel : kernels) add_kernel(jobs_.blocks.back(), kernel, Phase::forward);
  }

  void add_message(const Collective& message) {
    if (!support_of(message.op).timed) return;
    if (message.group == CommGroup::host || message.bytes < 1) return;
    const int members = message.op == CollectiveOp::send_receive ? 2 : group_size(message.group, plan());
    for (const double size : {1024.0, 65536.0, 1048576.0, message.bytes})
      messages_.insert({message.op, members, size});
  }

  Jobs& jobs_;
  double repeats_ = 1;  // of the current block
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

// Whether `which` holds for a sample with the job's operation, members and bytes.
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
