// Topic experts.
#include <algorithm>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "plan/fanout.h"
#include "plan/work/shape.h"
#include "result/explain/explain.h"
#include "result/lines.h"

namespace rehearse {

namespace {

// Seconds of the kernels of `run.kernels` that a block runs once a layer and `picks` selects.
template <typename Picks>
double seconds_of(const Explained& run, const std::string& block, const Picks& picks) {
  double seconds = 0;
  for (const KernelTime& kernel : run.kernels)
    if (kernel.block == block && picks(kernel)) seconds += kernel.seconds;
  return seconds;
}

const Block* sparse_block(const Work& work) {
  const auto has_experts = [](const Block& block) {
    return block.name != "mtp" && block.expert_parameters() > 0;
  };
  const auto found = std::ranges::find_if(work.blocks, has_experts);
  return found == work.blocks.end() ? nullptr : &*found;
}

void rows_and_bytes(const Explained& run, const Experts& experts, Lines& text) {
  const Plan& plan = run.report.plan;
  const Shape shape = shape_on_one_rank(run.report.model, plan);
  const double chosen = static_cast<double>(shape.rows * experts.per_token);
  const double bytes = Shape::elements(shape.rows * experts.per_token, shape.latent) * shape.element_bytes;
  text.line(
      "  tokens    {} of a rank x k = {:.0f} per microbatch and layer; {:.0f} for each of the {} experts of "
      "a rank",
      shape.rows, chosen, chosen * plan.ep / static_cast<double>(experts.count) * plan.expert_load(),
      experts.count / plan.ep);
  if (plan.ep == 1) {
    text.line("  dispatch  none: every rank holds all experts (ep = 1)");
    return;
  }
  const double ep = plan.ep;
  text.line(
      "  payload   {} in dispatch, the same in combine, and both again in backward; (ep-1)/ep = {:.1f} % of "
      "it leaves the rank",
      format_bytes(bytes), 100 * (ep - 1) / ep);
  const double visits = copies({experts.count, experts.per_token}, ep);
  text.line(
      "  unique    a token has n (1 - C(E - E/n, k) / C(E, k)) = {:.2f} of n = {} ranks as destinations: {} "
      "if each",
      visits, plan.ep, format_bytes(bytes / static_cast<double>(experts.per_token) * visits));
  text.line("            receives it once ({})",
            plan.sends_rows_once()
                ? "as in this plan: " + to_string(plan.dispatcher)
                : "with --moe-dispatcher deepep or hybridep; this plan sends one copy per expert");
}

void times(const Explained& run, const Block& block, Lines& text) {
  const double sent = seconds_of(
      run, block.name, [](const KernelTime& kernel) { return kernel.of_experts && kernel.is_collective; });
  const double products = seconds_of(
      run, block.name, [](const KernelTime& kernel) { return kernel.of_experts && !kernel.is_collective; });
  const double all = seconds_of(run, block.name, [](const KernelTime&) { return true; });
  if (!(all > 0)) return;
  text.line(
      "  layer     {} forward and backward, isolated: expert GEMMs {} ({:.0f} %), dispatch and combine {} "
      "({:.0f} %)",
      format_seconds(all), format_seconds(products), 100 * products / all, format_seconds(sent),
      100 * sent / all);
  text.line("  exposed   on the critical path: {} of a step of {}",
            format_seconds(run.report.time.exposed_ep), format_seconds(run.report.step_time_s));
}

}  // namespace

std::string explain_experts(const Explained& run) {
  const Model& model = run.report.model;
  const Plan& plan = run.report.plan;
  constexpr const char* kSource =
      "Source: Shazeer et al. 2017; Fedus et al. 2021 (Switch Transformer), section 2; DeepSeek-V3, section "
      "3.2";
  Lines text;
  text.line(
      "A router sends each token to k of E experts (MLPs) and adds up their weighted outputs. The experts "
      "are");
  text.line("spread over ep ranks: dispatch sends tokens to their experts, combine returns the results.");
  const Block* block = sparse_block(run.work);
  if (!model.experts || block == nullptr) {
    text.line("This model has no experts: every token passes the only MLP of each layer.");
    text.line("");
    text.line("{}", kSource);
    return text.take();
  }
  const Experts& experts = *model.experts;
  text.line(
      "E = {}, k = {}, width {}{}; ep = {}, tensor parallelism inside an expert {}", experts.count,
      experts.per_token, experts.ffn_hidden,
      experts.shared_ffn_hidden > 0 ? fmt::format(", shared experts {}", experts.shared_ffn_hidden) : "",
      plan.ep, plan.etp);
  text.line("");
  text.line("  active    k/E = {:.2f} % of the expert parameters; a rank has {:.2f} M of them per layer",
            100.0 * static_cast<double>(experts.per_token) / static_cast<double>(experts.count),
            block->expert_parameters() / 1e6);
  rows_and_bytes(run, experts, text);
  times(run, *block, text);
  text.line("  expert gradients are reduced over {}, all others over {} (dp x cp)",
            plan.edp() > 1 ? fmt::format("{} ranks", plan.edp()) : "1 rank", plan.dp * plan.cp);
  if (plan.expert_load() > 1)
    text.line(
        "  the busiest rank receives {:.2f} times an equal share of the tokens, and the others wait for it",
        plan.expert_load());
  text.line("");
  text.line("{}", kSource);
  return text.take();
}

}  // namespace rehearse
