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
    case ScheduleName::zb_h1:
      return "zb-h1";
    case ScheduleName::zb_h2:
      return "zb-h2";
    case ScheduleName::zb_v:
      return "zb-v";
    case ScheduleName::dualpipe_v:
      return "dualpipe-v";
    case ScheduleName::v_half:
      return "v-half";
    case ScheduleName::v_min:
      return "v-min";
  }
  return "";
}

bool is_v_shaped(ScheduleName schedule) {
  return schedule == ScheduleName::zb_v || schedule == ScheduleName::dualpipe_v ||
         schedule == ScheduleName::v_half || schedule == ScheduleName::v_min;
}

}  // namespace rehearse
