#include <tuple>

#include "plan/messages.h"
#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

// Lists the messages of a step.
class Listing {
 public:
  Listing(const Work& work, const Model& model, const Plan& plan, std::vector<double> saved_bytes)
      : work_(work),
        plan_(plan),
        sizes_(message_sizes(work, model, plan, std::move(saved_bytes))),
        groups_(plan),
        ties_(model.shares_embedding()) {}

  std::vector<StepMessage> run() {
    for (int stage = 0; stage < plan_.stages(); ++stage) {
      passes(stage);
      between_stages(stage);
      of_state(stage);
      if (plan_.offload == Offload::activations && !sizes_.saved_bytes.empty())
        for (const OpKind kind : {OpKind::offload, OpKind::reload}) ops(kind, stage, 1);
    }
    Block scratch;
    kernels(OpKind::step, 0,
            plan_.offload == Offload::optimizer ? clipping_kernels(1, plan_, scratch)
                                                : optimizer_kernels(1, plan_, scratch),
            1);
    return std::move(messages_);
  }

 private:
  void passes(int stage) {
    if (work_.receives_activation(stage)) kernels(OpKind::forward, stage, work_.arrival.forward, 1);
    if (work_.receives_gradient(stage)) kernels(OpKind::backward_input, stage, work_.arrival.forward, 1);
    for (const Repeated& part : work_.parts[static_cast<std::size_t>(stage)]) {
      const Block& block = work_.blocks[static_cast<std::size_t>(part.block)];
      kernels(OpKind::forward, stage, block.forward, part.repeats);
      kernels(OpKind::backward_input, stage, block.recompute, part.repeats);
      kernels(OpKind::backward_input, stage, block.backward_input, part.repeats);
      kernels(OpKind::backward_weight, stage, block.backward_weight, part.repeats);
    }
  }

  void kernels(OpKind kind, int stage, const std::vector<Kernel>& kernels, std::int64_t repeats) {
    for (const Kernel& kernel : kernels) {
      const auto* collective = std::get_if<Collective>(&kernel.what);
      if (collective == nullptr) continue;
      Collective what = *collective;
      what.calls *= repeats;
      add({kind, stage, what});
    }
  }

  void between_stages(int stage) {
    const auto rank = [this](int of) { return pipeline_rank_of(of, plan_); };
    const int last = plan_.stages() - 1;
    if (stage < last && rank(stage) != rank(stage + 1)) ops(OpKind::send_forward, stage, 1);
    if (stage > 0 && rank(stage) != rank(stage - 1)) ops(OpKind::send_backward, stage, 1);
    if (ties_ && (stage == 0 || stage == last)) ops(OpKind::reduce_tied, stage, 1);
  }

  void of_state(int stage) {
    const int buckets = sizes_.buckets[static_cast<std::size_t>(stage)];
    const int reduced = plan_.overlap_grad_reduce ? buckets : 1;
    ops(OpKind::reduce_grad, stage, reduced);
    ops(OpKind::reduce_replicas, stage, reduced);
    if (plan_.zero > 0) ops(OpKind::unshard, stage, gathers_by_unit(plan_) ? buckets : 1);
    if (plan_.offload != Offload::optimizer) return;
    ops(OpKind::offload_grad, stage, reduced);
    ops(OpKind::reload_param, stage, 1);
  }

  void ops(OpKind kind, int stage, int parts) {
    for (int part = 0; part < parts; ++part)
      for (const Collective& what : messages_of(sizes_, plan_, {kind, stage, part, parts}))
        add({kind, stage, what});
  }

  // Adjacent calls of one size become one entry.
  void add(const StepMessage& message) {
    if (message.what.calls == 0 || !groups_.has_peers(message.what.group)) return;
    const auto size = [](const StepMessage& of) {
      return std::tuple(of.kind, of.stage, of.what.op, of.what.group, of.what.bytes);
    };
    if (!messages_.empty() && size(messages_.back()) == size(message))
      messages_.back().what.calls += message.what.calls;
    else
      messages_.push_back(message);
  }

  const Work& work_;
  const Plan& plan_;
  MessageSizes sizes_;
  CommGroups groups_;
  bool ties_;
  std::vector<StepMessage> messages_;
};

}  // namespace

std::vector<StepMessage> step_messages(const Work& work, const Model& model, const Plan& plan,
                                       std::vector<double> saved_bytes) {
  return Listing(work, model, plan, std::move(saved_bytes)).run();
}

}  // namespace rehearse
