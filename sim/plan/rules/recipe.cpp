#include "plan/rules/rules.h"

#include "plan/frameworks/traits.h"

#include <fmt/core.h>

namespace rehearse {

namespace {

void add_scaling_rules(const Plan& plan, const std::string& values, std::vector<BrokenRule>& violations) {
  if (plan.fp8_scaling == Fp8Scaling::tensor) return;
  const auto report = [&](const char* field, const char* rule, const char* legal) {
    violations.push_back(
        {"", field, rule, fmt::format("{}, fp8 scaling {}", values, to_string(plan.fp8_scaling)), legal});
  };
  const bool is_fp8 = plan.precision == Precision::fp8;
  const bool of_both = plan.fp8_scaling == Fp8Scaling::mx;
  const bool of_core = plan.fp8_scaling == Fp8Scaling::current || of_both;
  const Fp8Library library = traits(plan).fp8;
  const bool has_both = library != Fp8Library::other;
  if (of_both && !(is_fp8 && has_both))
    report("fp8_scaling", "MXFP8 needs framework megatron-core or torchtitan in fp8",
           "tensor, or precision = fp8 with framework = megatron-core, or precision = fp8 with framework = "
           "torchtitan");
  if (of_core && !of_both && !(is_fp8 && library == Fp8Library::transformer_engine))
    report("fp8_scaling", "Transformer Engine's recipes need framework megatron-core in fp8",
           "tensor, or precision = fp8 with framework = megatron-core");
  if (!of_core && !(is_fp8 && library == Fp8Library::torchao))
    report("fp8_scaling", "torchao's recipes need framework torchtitan in fp8",
           "tensor, or precision = fp8 with framework = torchtitan");
  if (plan.fp8_scaling == Fp8Scaling::mx && !plan.fp8_either_layout)
    report("fp8_scaling", "MXFP8 needs Blackwell, with compute capability 10.0 or above",
           "tensor, or current");
  if (plan.fp8_scaling == Fp8Scaling::mx && plan.fp8_weight_copies == 1)
    report("fp8_weight_copies", "MXFP8 needs two copies of the weights, scaled by rows and by columns", "2");
}

void add_loss_rules(const Plan& plan, std::vector<BrokenRule>& violations) {
  const bool is_fused = plan.fused_cross_entropy && traits(plan).fuses_loss_by_te;
  if (plan.loss_fusion != LossFusion::native && !is_fused)
    violations.push_back({"", "cross_entropy_fusion_impl",
                          "Transformer Engine's loss needs framework megatron-core with a fused loss",
                          fmt::format("fused_cross_entropy {}, framework {}",
                                      plan.fused_cross_entropy ? "on" : "off", to_string(plan.framework)),
                          "native, or fused_cross_entropy = on with framework = megatron-core"});
}

// Parts outside the layers that Megatron core multiplies in fp8 on request.
void add_fp8_rules(const Plan& plan, const std::string& values, std::vector<BrokenRule>& violations) {
  const bool in_fp8 = plan.precision == Precision::fp8 && traits(plan).fp8 == Fp8Library::transformer_engine;
  const auto report = [&](const char* field, const char* rule) {
    violations.push_back({"", field, rule, fmt::format("{}, framework {}", values, to_string(plan.framework)),
                          "off, or precision = fp8 with framework = megatron-core"});
  };
  if (plan.fp8_output_proj && !in_fp8)
    report("fp8_output_proj", "an output projection in fp8 needs framework megatron-core in fp8");
  // Beside linear layers in NVFP4, attention can also be Transformer Engine's in fp8 (DotProductAttention).
  const bool quantized = is_quantized(plan.precision) && traits(plan).fp8 == Fp8Library::transformer_engine;
  if (plan.fp8_attention && !quantized)
    report("fp8_dot_product_attention", "attention in fp8 needs framework megatron-core in fp8 or fp4");
  if (plan.fp8_attention && (!plan.fused_attention || plan.cp > 1))
    violations.push_back(
        {"", "fp8_dot_product_attention", "attention in fp8 needs fused attention and cp = 1",
         fmt::format("fused attention {}, cp {}", plan.fused_attention ? "on" : "off", plan.cp),
         "off, or fused_attention = on with cp = 1"});
}

void add_bf16_rules(const Plan& plan, const std::string& values, std::vector<BrokenRule>& violations) {
  if (plan.bf16_first_layers + plan.bf16_last_layers == 0) return;
  if (is_quantized(plan.precision) && traits(plan).fp8 == Fp8Library::transformer_engine) return;
  violations.push_back({"", plan.bf16_last_layers > 0 ? "bf16_last_layers" : "bf16_first_layers",
                        "first and last layers in bf16 need framework megatron-core in fp8 or fp4",
                        fmt::format("{}, framework {}", values, to_string(plan.framework)),
                        "0, or precision = fp8 with framework = megatron-core"});
}

void add_fp4_rules(const Plan& plan, const std::string& values, std::vector<BrokenRule>& violations) {
  if (plan.precision != Precision::fp4) return;
  if (traits(plan).fp8 != Fp8Library::transformer_engine)
    violations.push_back({"", "precision", "NVFP4 needs framework megatron-core",
                          fmt::format("{}, framework {}", values, to_string(plan.framework)),
                          "bf16, or fp8, or framework = megatron-core"});
  if (!plan.fp8_either_layout)
    violations.push_back({"", "precision", "NVFP4 needs Blackwell, with compute capability 10.0 or above",
                          values, "bf16, or fp8"});
}

}  // namespace

void add_recipe_rules(const Plan& plan, std::vector<BrokenRule>& violations) {
  const std::string values =
      fmt::format("recipe {}, precision {}", to_string(plan.recipe), to_string(plan.precision));
  if (plan.recipe == Recipe::fp8_weights && plan.precision != Precision::fp8)
    violations.push_back(
        {"", "recipe", "weights in fp8 need GEMMs in fp8", values, "precision = fp8, or megatron"});
  if (plan.recipe == Recipe::bf16 && plan.precision != Precision::bf16)
    violations.push_back({"", "recipe", "a recipe of bf16 only needs precision bf16", values,
                          "precision = bf16, or megatron"});
  const bool adds = plan.recipe == Recipe::deepspeed_bf16 || plan.recipe == Recipe::nanotron;
  const char* const who =
      plan.recipe == Recipe::nanotron ? "nanotron's FP32GradientAccumulator" : "DeepSpeed's BF16_Optimizer";
  if (adds && plan.precision != Precision::bf16)
    violations.push_back(
        {"", "recipe", fmt::format("{} needs precision bf16", who), values, "precision = bf16, or megatron"});
  if (adds && plan.zero > 1)
    violations.push_back({"", "recipe", fmt::format("{} shards only the optimizer state", who),
                          fmt::format("{}, zero {}", values, plan.zero), "zero = 1, or zero"});
  if (plan.recipe == Recipe::autocast && plan.zero > 1)
    violations.push_back({"", "recipe", "torch.autocast cannot cast sharded gradients or weights",
                          fmt::format("{}, zero {}", values, plan.zero), "zero = 1, or fsdp"});
  const bool holds_fp8 =
      plan.precision == Precision::fp8 && (plan.recipe == Recipe::fp8_weights || plan.recipe == Recipe::zero);
  if (plan.fp8_weight_copies < 1 || plan.fp8_weight_copies > 2 || (plan.fp8_weight_copies == 1 && !holds_fp8))
    violations.push_back({"", "fp8_weight_copies", "fp8 weights have one or two copies",
                          fmt::format("{}, {} copies", values, plan.fp8_weight_copies),
                          holds_fp8 ? "1, or 2" : "2, or precision = fp8 with recipe = fp8-weights"});
  add_scaling_rules(plan, values, violations);
  add_loss_rules(plan, violations);
  add_fp8_rules(plan, values, violations);
  add_bf16_rules(plan, values, violations);
  add_fp4_rules(plan, values, violations);
  if (plan.precision == Precision::fp32 && plan.recipe != Recipe::megatron)
    violations.push_back({"", "recipe", "a mixed-precision recipe does not apply to precision fp32", values,
                          "megatron, or precision = bf16"});
}

}  // namespace rehearse
