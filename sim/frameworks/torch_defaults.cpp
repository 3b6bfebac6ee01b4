#include "frameworks/torch_defaults.h"

namespace rehearse {

void add_eager_transformers(Imported& imported, Json& plan) {
  for (const char* key : {"fused_norm", "fused_rotary", "fused_activation", "fused_cross_entropy"})
    plan[key] = false;
  imported.notes.emplace_back(
      "the network is counted as transformers runs it, without a compiler: norms, rotary positions, "
      "activation "
      "and loss are a kernel for each operation; --norm-fusion, --rope-fusion, --swiglu-fusion and "
      "--cross-entropy-loss-fusion count fused ones");
}

void add_autocast(Json& plan) {
  const bool is_narrow = plan["precision"] == "bf16" || plan["precision"] == "fp16";
  if (plan.value("zero", 0) != 0 || !is_narrow || plan.contains("recipe")) return;
  plan["recipe"] = "autocast";
  plan["grad_reduce"] = "fp32";
}

}  // namespace rehearse
