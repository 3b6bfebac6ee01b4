// Topics flops, memory and recompute.
#include "base/quantity.h"
#include "memory/memory.h"
#include "plan/recipe.h"
#include "plan/sharding.h"
#include "result/explain/explain.h"
#include "result/lines.h"
#include "result/memory_table.h"

namespace rehearse {

namespace {

struct Variant {
  const char* name;
  Recompute recompute;
};

// Activations that a whole stage saves for one microbatch, and the FLOPs relative to the model's.
void add_variant(Lines& text, const Explained& run, const Variant& variant) {
  Plan plan = run.report.plan;
  plan.recompute = variant.recompute;
  plan.recompute_layers = 1;
  plan.recompute_method = RecomputeMethod::uniform;
  plan.recompute_modules = {RecomputeModule::core_attn};
  const Work work = make_work(run.report.model, plan);
  const FlopCount flops = count_flops(work, plan);
  text.line("  {:<10} {:>9} saved per microbatch on stage 0; forward FLOPs x {:.3f}, all FLOPs x {:.3f}",
            variant.name, format_bytes(work.saved_bytes(0)), 1 + flops.recompute / flops.forward,
            flops.hardware() / flops.model());
}

std::string divided(int ranks) {
  return ranks > 1 ? fmt::format(", sharded over {} ranks", ranks) : "";
}

std::string where_optimizer_lies(const Plan& plan) {
  if (plan.offload == Offload::optimizer) return ", on the host";
  if (owns_parameters(plan)) return fmt::format(", on the largest of {} owner ranks", shard_size(plan));
  return divided(sharding(plan).optimizer);
}

}  // namespace

std::string explain_flops(const Explained& run) {
  const Report& report = run.report;
  const Plan& plan = report.plan;
  const FlopCount count = count_flops(run.work, plan);
  const double runs = static_cast<double>(plan.microbatches()) * plan.dp;
  const double tokens = static_cast<double>(plan.global_batch * plan.seq);
  const double six_nd = 6 * static_cast<double>(report.parameters) * tokens;
  Lines text;
  text.line("A GEMM of m x k by k x n has 2 m n k FLOPs; backward has twice the FLOPs of forward.");
  text.line("Attention counts the full score matrix, causal or not.");
  text.line("");
  text.line("  model    {:.4e} FLOPs per iteration: forward {:.4e}, backward {:.4e}", count.model() * runs,
            count.forward * runs, count.backward * runs);
  text.line("  hardware {:.4e}: adds recompute {:.4e} and scores recomputed by fused attention {:.4e}",
            count.hardware() * runs, count.recompute * runs, count.rescore * runs);
  if (count.repeated > 0)
    text.line("           and work that tensor-parallel ranks repeat or pad {:.4e}", count.repeated * runs);
  text.line("  6 N D    {:.4e} (N = {:.2f} B parameters, D = {:.0f} tokens): {:.3f} x model FLOPs", six_nd,
            static_cast<double>(report.parameters) / 1e9, tokens, six_nd / (count.model() * runs));
  text.line("");
  text.line("  MFU = model FLOPs / (step time x GPUs x peak) = {:.2f} %   ({:.4g} TFLOP/s/GPU of {:.0f})",
            100 * report.mfu, report.model_tflops_per_gpu, report.facts.peak_flops / 1e12);
  text.line("  HFU = hardware FLOPs / (same denominator)   = {:.2f} %", 100 * report.hfu);
  text.line("");
  text.line("Other tools count 6 N D, half of causal attention, or recompute: compare times, not MFUs.");
  text.line("Source: Narayanan et al. 2021 (SC21), equation 3; Chowdhery et al. 2022 (PaLM), appendix B");
  return text.take();
}

std::string explain_memory(const Explained& run) {
  const Report& report = run.report;
  const StateBytes state = state_bytes(report.plan);
  const RankMemory rank = heaviest_rank(report);
  Lines text;
  text.line("Pipeline rank {} has the highest peak: {:.4f} B parameters, {} of memory:", rank.rank,
            rank.parameters / 1e9, format_bytes(rank.peak_bytes));
  text.line("");
  text.line("  weights      {:>9}  {} bytes each{}", format_bytes(rank.parameters_bytes), state.parameter,
            divided(sharding(report.plan).parameters));
  text.line("  gradients    {:>9}  {} bytes each{}", format_bytes(rank.gradients_bytes), state.gradients(),
            divided(sharding(report.plan).gradients));
  text.line("  optimizer    {:>9}  master weight {} and two moments {} bytes each{}{}",
            format_bytes(rank.optimizer_bytes), state.master, state.moments,
            state.gradient_copy > 0 ? fmt::format(", a separate gradient {}", state.gradient_copy) : "",
            where_optimizer_lies(report.plan));
  text.line("  activations  {:>9}  saved for backward:",
            format_bytes(rank.activations_bytes - rank.working_bytes));
  for (const LiveMicrobatches& live : rank.alive)
    text.line("                            stage {}: {} x {}, microbatches {}", live.stage,
              live.microbatches.size(), format_bytes(run.work.saved_bytes(live.stage)),
              write_runs(live.microbatches));
  text.line("  working set  {:>9}  outputs, gradients and recomputed tensors of the running op",
            format_bytes(rank.working_bytes));
  text.line("  logits       {:>9}  fp32, with the copies of the loss", format_bytes(rank.logits_bytes));
  text.line("  buffers      {:>9}  messages and gathered parameters in flight, weights cast once per step",
            format_bytes(rank.buffers_bytes - rank.workspace_bytes));
  text.line("  workspace    {:>9}  cuBLAS, with PyTorch's size", format_bytes(rank.workspace_bytes));
  text.line("");
  text.line("{} bytes of state per parameter: recipe {}.", state.total(), to_string(report.plan.recipe));
  const Footprint gpu = fullest_gpu(report);
  text.line("Total: {};", in_words(gpu));
  text.line("{}.", in_words(memory_verdict(report)));
  text.line(
      "Source: Rajbhandari et al. 2020, section 3.1 (state); Korthikanti et al. 2022, section 4 "
      "(activations)");
  return text.take();
}

std::string explain_recompute(const Explained& run) {
  const Report& report = run.report;
  Lines text;
  text.line(
      "Recompute (activation checkpointing) frees activations after forward and computes them again in "
      "backward.");
  text.line("Full recompute adds one forward: (1 + 1 + 2)/(1 + 2) = 4/3 of the FLOPs of the layers.");
  text.line("This plan: {}", to_string(report.plan.recompute));
  text.line("");
  for (const Variant& variant : {Variant{"none", Recompute::none},
                                 {"selective", Recompute::selective},
                                 {"op", Recompute::op},
                                 {"full", Recompute::full}})
    add_variant(text, run, variant);
  text.line(
      "  (all FLOPs include the scores that fused attention recomputes, and the output projection, which");
  text.line("  is never recomputed)");
  text.line("");
  text.line("  recompute: {} of the critical path of {}; HFU {:.2f} %, MFU {:.2f} %",
            format_seconds(report.time.recompute), format_seconds(report.step_time_s), 100 * report.hfu,
            100 * report.mfu);
  text.line("");
  text.line(
      "Source: Chen et al. 2016; Korthikanti et al. 2022, sections 4 and 5; Megatron-LM's --recompute-*");
  return text.take();
}

}  // namespace rehearse
