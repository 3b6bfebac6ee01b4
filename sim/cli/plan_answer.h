// What does a search of plans answer, as JSON and to read?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"
#include "plan/plan.h"

namespace rehearse {

struct Finalist {
  Json report;  // rehearse.report/1
  Plan plan;
};

// A plan that is fastest for its memory, by the reference engine.
struct FrontPlan {
  Plan plan;
  double step_time_s = 0;
  double needed_bytes = 0;  // of its fullest GPU
};

struct PlanAnswer {
  std::vector<Finalist> finalists;  // fastest first
  std::vector<FrontPlan> front;     // fastest first
  Model model;
  std::size_t considered = 0, illegal = 0, does_not_fit = 0, pruned = 0, run = 0;
  double elapsed_s = 0;
};

// {"plans": [{rank, plan, report, launch}], "pareto": [{plan, step_time_s, needed_bytes}], "considered",
// "illegal", "does_not_fit", "pruned", "simulated", "elapsed_s"}. launch: {"megatron", "deepspeed",
// "torchtitan"}, each null where "why_not" says why, and with the plan's
// keys that it has no words for in "unsaid".
std::string write_plan_json(const PlanAnswer& answer);

// A ranked table, the front, where the first plan's time goes and what the others lose against it, and how
// to launch it.
std::string write_plan_text(const PlanAnswer& answer);

}  // namespace rehearse
