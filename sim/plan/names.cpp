#include "plan/plan.h"

namespace rehearse {

std::string to_string(Axis axis) {
  switch (axis) {
    case Axis::tp:
      return "tp";
    case Axis::cp:
      return "cp";
    case Axis::ep:
      return "ep";
    case Axis::dp:
      return "dp";
    case Axis::pp:
      return "pp";
  }
  return "";
}

std::string to_string(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::op:
      return "op";
    case Recompute::full:
      return "full";
  }
  return "";
}

std::string to_string(RecomputeMethod method) {
  return method == RecomputeMethod::uniform ? "uniform" : "block";
}

std::string to_string(RecomputeModule module) {
  switch (module) {
    case RecomputeModule::core_attn:
      return "core_attn";
    case RecomputeModule::mla_up_proj:
      return "mla_up_proj";
    case RecomputeModule::layernorm:
      return "layernorm";
    case RecomputeModule::mlp:
      return "mlp";
    case RecomputeModule::moe:
      return "moe";
    case RecomputeModule::moe_act:
      return "moe_act";
    case RecomputeModule::shared_experts:
      return "shared_experts";
  }
  return "";
}

std::string to_string(Recipe recipe) {
  switch (recipe) {
    case Recipe::megatron:
      return "megatron";
    case Recipe::zero:
      return "zero";
    case Recipe::sagemaker:
      return "sagemaker";
    case Recipe::deepspeed_bf16:
      return "deepspeed-bf16";
    case Recipe::nanotron:
      return "nanotron";
    case Recipe::fsdp:
      return "fsdp";
    case Recipe::autocast:
      return "autocast";
    case Recipe::bf16:
      return "bf16";
    case Recipe::fp8_weights:
      return "fp8-weights";
  }
  return "";
}

std::string to_string(Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return "bf16";
    case Precision::fp16:
      return "fp16";
    case Precision::fp8:
      return "fp8";
    case Precision::fp4:
      return "fp4";
    case Precision::fp32:
      return "fp32";
  }
  return "";
}

std::string to_string(Fp8Scaling scaling) {
  switch (scaling) {
    case Fp8Scaling::tensor:
      return "tensor";
    case Fp8Scaling::tensor_gathered:
      return "tensor-gathered";
    case Fp8Scaling::row:
      return "row";
    case Fp8Scaling::current:
      return "current";
    case Fp8Scaling::mx:
      return "mx";
  }
  return "";
}

std::string to_string(LossFusion fusion) {
  switch (fusion) {
    case LossFusion::native:
      return "native";
    case LossFusion::te:
      return "te";
    case LossFusion::te_in_place:
      return "te-in-place";
  }
  return "";
}

std::string to_string(ContextExchange exchange) {
  switch (exchange) {
    case ContextExchange::ring:
      return "p2p";
    case ContextExchange::gather:
      return "allgather";
    case ContextExchange::all_to_all:
      return "a2a";
  }
  return "";
}

std::string to_string(Dispatcher dispatcher) {
  switch (dispatcher) {
    case Dispatcher::all_to_all:
      return "alltoall";
    case Dispatcher::deepep:
      return "deepep";
    case Dispatcher::hybridep:
      return "hybridep";
  }
  return "";
}

std::string to_string(GraphModule module) {
  switch (module) {
    case GraphModule::attn:
      return "attn";
    case GraphModule::mamba:
      return "mamba";
    case GraphModule::mlp:
      return "mlp";
    case GraphModule::moe:
      return "moe";
    case GraphModule::moe_router:
      return "moe_router";
    case GraphModule::moe_preprocess:
      return "moe_preprocess";
  }
  return "";
}

std::string to_string(Offload offload) {
  switch (offload) {
    case Offload::none:
      return "none";
    case Offload::optimizer:
      return "optimizer";
    case Offload::activations:
      return "activations";
  }
  return "";
}

}  // namespace rehearse
