// Topics tensor, batch and zero.
#include "base/quantity.h"
#include "memory/memory.h"
#include "plan/recipe.h"
#include "result/explain/explain.h"
#include "result/lines.h"

namespace rehearse {

namespace {

// Bytes that one rank sends for the collectives of these kernels in a ring: (t-1)/t of the buffer, twice that
// for an all-reduce.
double sent_bytes(const std::vector<Kernel>& kernels, int tp) {
  double sum = 0;
  for (const Kernel& kernel : kernels) {
    const auto* collective = std::get_if<Collective>(&kernel.what);
    if (collective == nullptr || collective->group != CommGroup::tensor) continue;
    sum += (collective->op == CollectiveOp::all_reduce ? 2 : 1) * collective->bytes * (tp - 1) / tp;
  }
  return sum;
}

const Block* layer_of(const Work& work) {
  for (const Block& block : work.blocks)
    if (block.role == BlockRole::layer) return &block;
  return nullptr;
}

// The same plan with another ZeRO stage, as in the paper: no offload, shards over all replicas.
Plan with_zero(Plan plan, int stage) {
  plan.zero = stage;
  plan.zero_shard = 0;
  plan.offload = Offload::none;
  plan.reshard_after_forward = plan.reduce_each_microbatch = true;
  return plan;
}

}  // namespace

std::string explain_tensor(const Explained& run) {
  const Plan& plan = run.report.plan;
  const double t = plan.tp, bytes = plan.precision == Precision::fp32 ? 4 : 2;
  const double bsh = static_cast<double>(plan.micro_batch * (plan.seq / plan.cp)) *
                     static_cast<double>(run.report.model.hidden);
  Lines text;
  // After attention and after the MLP. A hybrid's layers have one of these, or a state space.
  const bool has_one_part = !run.report.model.pattern.empty();
  const char* const often = has_one_part ? "once" : "twice";
  const int sent = has_one_part ? 4 : 8;
  text.line(
      "Each layer all-reduces over its t tensor-parallel ranks {} in forward and {} in backward. A ring",
      often, often);
  text.line(
      "all-reduce of b s h elements sends 2 b s h (t-1)/t, so a layer sends {} b s h (t-1)/t per microbatch.",
      sent);
  text.line("b = {}, s = {}, h = {}, t = {}", plan.micro_batch, plan.seq / plan.cp, run.report.model.hidden,
            plan.tp);
  text.line("");
  text.line("  {} b s h (t-1)/t = {:.0f} elements = {} at {} bytes", sent, sent * bsh * (t - 1) / t,
            format_bytes(sent * bsh * (t - 1) / t * bytes), bytes);
  if (const Block* layer = layer_of(run.work)) {
    text.line("  this plan's layer: forward {}, recompute {}, backward {}",
              format_bytes(sent_bytes(layer->forward, plan.tp)),
              format_bytes(sent_bytes(layer->recompute, plan.tp)),
              format_bytes(sent_bytes(layer->backward_input, plan.tp) +
                           sent_bytes(layer->backward_weight, plan.tp)));
    if (plan.sequence_parallel && plan.tp > 1)
      text.line(
          "  (sequence parallelism: reduce-scatter and all-gather for each all-reduce, and two all-gathers\n"
          "  more in backward, because the gathered tensors are not saved)");
  }
  text.line("  exposed on the critical path: {} of a step of {}", format_seconds(run.report.time.exposed_tp),
            format_seconds(run.report.step_time_s));
  text.line("  t = {} {} the {} GPUs of a node", plan.tp,
            plan.tp <= run.report.facts.gpus_per_node ? "stays within" : "leaves",
            run.report.facts.gpus_per_node);
  text.line("");
  text.line("Source: Narayanan et al. 2021 (SC21), section 3.2; Korthikanti et al. 2022, section 4.2.2");
  return text.take();
}

std::string explain_batch(const Explained& run) {
  const Plan& plan = run.report.plan;
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq);
  Lines text;
  text.line("train batch = micro batch x gradient accumulation x data-parallel replicas");
  text.line("");
  text.line("  {} = {} x {} x {} sequences", plan.global_batch, plan.micro_batch, plan.microbatches(),
            plan.dp);
  text.line("  {:.0f} tokens per iteration ({} sequences of {})", tokens, plan.global_batch, plan.seq);
  text.line("");
  text.line("Gradient accumulation is the number m of microbatches per optimizer step.");
  text.line("A mini batch is the batch of one replica: {} sequences.", plan.global_batch / plan.dp);
  text.line(
      "Source: DeepSpeed, \"Batch size related parameters\"; Narayanan et al. 2021 (SC21), table of symbols");
  return text.take();
}

std::string explain_zero(const Explained& run) {
  const Report& report = run.report;
  const StateBytes state = state_bytes(report.plan);
  const RankMemory heaviest = heaviest_rank(report);
  const char* const formulas[] = {"w + g + o", "w + g + o/d", "w + (g + o)/d", "(w + g + o)/d"};
  Lines text;
  text.line(
      "ZeRO shards over d data-parallel replicas: stage 1 optimizer state, 2 also gradients, 3 also "
      "weights.");
  text.line("d = {}; bytes per parameter: weight w = {}, gradient g = {}, optimizer o = {} (recipe {})",
            report.plan.dp, state.parameter, state.gradients(), state.optimizer(),
            to_string(report.plan.recipe));
  text.line("");
  for (int stage = 0; stage < 4; ++stage) {
    const Plan sharded = with_zero(report.plan, stage);
    text.line("  stage {}  {:<14} = {:6.2f} bytes; {:>9} for the {:.2f} B parameters of pipeline rank {}{}",
              stage, formulas[stage], held_state(1, 0, sharded).total(),
              format_bytes(held_state(heaviest.parameters - heaviest.expert_parameters,
                                      heaviest.expert_parameters, sharded)
                               .total()),
              heaviest.parameters / 1e9, heaviest.rank, stage == report.plan.zero ? " (this plan)" : "");
  }
  text.line("");
  text.line(
      "Traffic per rank and step: 2 psi elements for stages 0, 1 and 2; 3 psi for stage 3 (weights are "
      "gathered in");
  text.line("forward and backward, gradients are reduce-scattered); psi = {:.2f} B parameters here.",
            heaviest.parameters / 1e9);
  text.line("Source: Rajbhandari et al. 2020 (ZeRO), sections 3.1, 5 and 7");
  return text.take();
}

}  // namespace rehearse
