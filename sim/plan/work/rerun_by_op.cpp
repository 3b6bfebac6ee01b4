#include <algorithm>

#include "plan/work/recompute.h"

namespace rehearse {

namespace {

std::int64_t width_of(const Block& block, TensorId output, const Gemm& gemm) {
  return static_cast<std::int64_t>(block.tensors[static_cast<std::size_t>(output)].elements) / gemm.m;
}

// A separate GEMM for each output that does not stay.
std::vector<Kernel> products_again(const Block& block, const Kernel& kernel, const Gemm& gemm,
                                   std::int64_t& products) {
  std::vector<Kernel> again;
  for (const TensorId output : kernel.writes) {
    Gemm part = gemm;
    part.n = width_of(block, output, gemm);
    const bool stays = products++ % 2 == 0;
    if (stays) continue;
    if (part.n != gemm.n) part.weight = -1;  // kernels beside a whole GEMM are not beside its parts
    const std::string& made = block.tensors[static_cast<std::size_t>(output)].name;
    again.push_back(
        {part.n == gemm.n ? kernel.name : kernel.name + "_" + made, part, kernel.reads, {output}});
  }
  return again;
}

// Whether the kernel sums over ranks, at once or in steps whose parts are added here.
bool sums_over_ranks(const Kernel& kernel) {
  if (is_one_of(kernel, Pointwise::add_partials)) return true;
  const auto* collective = std::get_if<Collective>(&kernel.what);
  return collective != nullptr &&
         (collective->op == CollectiveOp::reduce_scatter || collective->exchange == Exchange::partial_sums);
}

std::vector<Kernel> again(const Block& block, const Kernel& kernel, std::int64_t& products) {
  if (std::holds_alternative<Attention>(kernel.what)) return {};
  if (sums_over_ranks(kernel)) return {};
  // torchtitan keeps the maximum of a tensor, not those of rows (activation_checkpoint.py: aten.max).
  if (is_one_of(kernel, Pointwise::find_maximum)) return {};
  if (const auto* gemm = std::get_if<Gemm>(&kernel.what))
    if (gemm->batch == 1 && gemm->n > 0) return products_again(block, kernel, *gemm, products);
  return {kernel};
}

}  // namespace

std::vector<Kernel> kernels_rerun_by_op(const Block& block) {
  std::vector<Kernel> candidates;
  std::int64_t products = 0;
  for (const Kernel& kernel : block.forward)
    for (Kernel& run : again(block, kernel, products)) candidates.push_back(std::move(run));

  std::vector<bool> needed(block.tensors.size());
  const auto need = [&needed](const Kernel& kernel) {
    for (const TensorId id : kernel.reads) needed[static_cast<std::size_t>(id)] = true;
  };
  for (const auto* kernels : {&block.backward_input, &block.backward_weight})
    for (const Kernel& kernel : *kernels) need(kernel);

  std::vector<Kernel> rerun;
  for (auto kernel = candidates.rbegin(); kernel != candidates.rend(); ++kernel) {
    if (std::ranges::none_of(kernel->writes,
                             [&](TensorId id) { return needed[static_cast<std::size_t>(id)]; }))
      continue;
    need(*kernel);
    rerun.push_back(std::move(*kernel));
  }
  std::ranges::reverse(rerun);
  return rerun;
}

}  // namespace rehearse
