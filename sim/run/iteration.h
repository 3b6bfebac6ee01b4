// How does one training iteration get from its inputs to its report? The flow of the whole program in one
// place.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/price.h"
#include "cost/profile.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "result/report.h"
#include "result/timeline.h"
#include "run/conditions.h"
#include "run/loads.h"
#include "run/stage_nodes.h"
#include "schedule/schedule.h"
#include "schedule/tasks.h"

namespace rehearse {

enum class Engine : std::uint8_t { simgrid, reference };
std::string to_string(Engine engine);

// Memory and time that an output takes for each op of a simulated rank, beside the simulation.
struct OutputCost {
  double bytes = 0, seconds = 0;
};

// The inputs: everything that an iteration depends on.
struct Experiment {
  Model model;
  Cluster cluster;
  Profile profile;
  Plan plan;  // legal: broken_rules() is empty
  Engine engine = Engine::simgrid;
  Fold fold = Fold::replicas;
  Conditions conditions = {};
  StageNodes stage_nodes = {};
  std::optional<Schedule> order = {};  // in place of the one that the plan names; it fits the plan
  std::string order_name = {};         // how reports call it
  bool with_split = true;              // Report::time, ranks and communication are found, O(ops)
  bool with_band = true;               // Report::uncertainty is found, O(GEMM samples); needs the split
  bool with_reserved = true;           // RankMemory::reserved_bytes are found, O(ops x tensors)
  Headroom headroom = {};              // memory that is to stay free on each GPU
  OutputCost output = {};              // of what is written about every op
  bool every_microbatch = false;       // the timeline is wanted, of a step of any length (run/long_step.h)
  bool memory_only = false;            // times of a step that does not repeat itself may be approximate
  bool large = false;                  // may take more memory and time than run/size.h allows
  std::int64_t stands_for = 0;  // microbatches of the step that this shorter one stands for; 0: its own
  std::vector<OmittedEffect> omitted_effects = {};  // options of the user that can decide the answer
};

// Everything known about an iteration before it runs.
struct Preparation {
  Work work;
  Prices prices;
  Schedule schedule;
  Tasks tasks;
  Loads loads;
};

Preparation prepare(const Experiment& experiment);

// The complete schedule of the experiment, without prices.
Schedule complete_order(const Experiment& experiment);

Report report_of(const Experiment& experiment, const Preparation& preparation, const Timeline& timeline);

// Where report.extrapolation is given, preparation and timeline are those of the longest step that was
// simulated.
struct Iteration {
  Preparation preparation;
  Timeline timeline;  // of the first iteration where there are several
  Report report;
  std::vector<double> step_times_s;  // of each iteration
};

// Engine::simgrid at most once a process.
Iteration run_iteration(const Experiment& experiment);

}  // namespace rehearse
