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
    case RecomputeModule::mlp:
      return "mlp";
    case RecomputeModule::layernorm:
      return "layernorm";
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
    case Precision::fp32:
      return "fp32";
  }
  return "";
}

std::string to_string(ScheduleName schedule) {
  switch (schedule) {
    case ScheduleName::gpipe:
      return "gpipe";
    case ScheduleName::one_f_one_b:
      return "1f1b";
    case ScheduleName::interleaved:
      return "interleaved-1f1b";
  }
  return "";
}

}  // namespace rehearse
