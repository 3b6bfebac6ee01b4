// How is the result of a plan search written, as JSON and as text?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "memory/sizing.h"
#include "model/model.h"
#include "plan/plan.h"
#include "search/search.h"

namespace rehearse {

struct Finalist {
  Json report;  // rehearse.report/1
  Plan plan;
  double step_time_s() const { return report.at("step_time_s").get<double>(); }
  // For --schedule auto: `plan` is the one whose order was replaced.
  bool has_found_order() const { return report.at("plan").at("schedule") == "auto"; }
};

// A plan that is fastest for its memory.
struct FrontPlan {
  Plan plan;
  double step_time_s = 0;
  double needed_bytes = 0;  // of its fullest GPU
};

struct PlanAnswer {
  std::vector<Finalist> finalists;  // fastest first
  std::vector<FrontPlan> front;     // fastest first
  SearchResult search;
  Engine engine = Engine::simgrid;
  Model model;
  std::size_t top = 0;  // plans asked for
  std::size_t considered = 0, illegal = 0;
  std::optional<FewestGpus> fewest_gpus = {};  // with the headroom; searched where no plan fits
  std::string stopped_by = {};                 // "interrupt", "time limit"; empty: the search ended by itself
  std::string unproven = {};  // why the places are not proven although the search ended; else empty
  double elapsed_s = 0;

  std::size_t proven() const { return unproven.empty() ? search.proven() : 0; }  // places
};

// {"plans": [{rank, plan, report, launch}], "pareto": [{plan, step_time_s, needed_bytes}], "considered",
// "illegal", "does_not_fit", "below_headroom", "fewest_gpus", "pruned", "simulated", "left", "proof",
// "elapsed_s"}. proof: how far no other plan can be before those listed, {"exact", "proven_places", "engine",
// "bounded", "stopped_by", "least_left_s", "why_not"}. launch: {"megatron", "deepspeed", "torchtitan"}. Each
// is null where "why_not" gives a reason. "unsaid" lists the plan's keys that it cannot express;
// "environment" has the variables that the plan needs.
std::string write_plan_json(const PlanAnswer& answer);

// A ranked table, the front, the times of the first plan and the losses of the others against it, and how to
// launch it.
std::string write_plan_text(const PlanAnswer& answer);

// The reason: "no plan fits: ...; the fewest GPUs that hold it: ...".
std::string no_plan_fits(const PlanAnswer& answer);

}  // namespace rehearse
