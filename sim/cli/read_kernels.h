// Which kernels does the plan run, which of them are one, and what launches them?
#pragma once

#include "base/json_reader.h"
#include "plan/plan.h"

namespace rehearse {

// Sets the plan's "fused_*" fields, what overlaps in its kernels, "train_metrics", "cuda_graph" and
// "cuda_graph_modules" (an array, or text with commas; graphs are on where modules are named). Where absent,
// what the plan has stays. InputError names what has the wrong form; the rules are the plan's.
void read_kernels(const JsonReader& json, Plan& plan);

}  // namespace rehearse
