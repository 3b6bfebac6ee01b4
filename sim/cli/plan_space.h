// Which plans does a search try? All combinations of the degrees and switches that the user left open.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/iteration.h"
#include "scenario/inputs.h"
#include "scenario/swept.h"

namespace rehearse {

// One combination. dp follows from the GPUs.
struct Choice {
  int tp = 1, cp = 1, pp = 1, vpp = 1, ep = 1, zero = 0;
  std::int64_t micro_batch = 1;
  int group = 0;  // of microbatches where chunks interleave; 0: pp
  Recompute recompute = Recompute::none;
  ScheduleName schedule = ScheduleName::one_f_one_b;
  bool seeks_order = false;  // replaces `schedule`: --schedule auto
};

// Fields that are searched take lists of values; a field that is not given takes all values that may be
// legal:
//   tp        divisors of the GPUs that divide the attention heads
//   cp        powers of two that leave a rank 1024 tokens of a sequence
//   pp        divisors of the GPUs that divide the layers; with a given layer split, up to their number
//   ep        divisors of the experts
//   mbs       divisors of the sequences that one replica gets
//   schedule  all of them (V-shaped ones where 2 pp divides the layers); without pipeline ranks 1f1b
//   vpp       for interleaved-1f1b all that divide the layers of a rank, but 1
//   zero      0 to 3; without replicas 0, with pipeline ranks 0 and 1 (fsdp and torchtitan: 0 to 3)
//   recompute none, selective and full
// Combinations whose degrees do not divide the GPUs or the batch are excluded.
class PlanSpace {
 public:
  // InputError when model, cluster, GPUs or global batch are missing, or a field that is not searched has
  // several values. Searched fields in a scenario file are ignored; flags are used.
  PlanSpace(const Swept& swept, Inputs& inputs);

  const std::vector<Choice>& choices() const { return choices_; }

  // The legal plans. Each equals read_scenario()'s result for its choice.
  struct Legal {
    std::vector<Plan> plans;
    std::vector<std::size_t> choice_of;  // by plan
  };
  Legal legal();

  // The legal plans of the choice with larger groups of microbatches. None where chunks do not interleave, or
  // the user gave the group.
  std::vector<Plan> with_larger_groups(const Choice& choice);

  // Whether to search an order for the plans found: "auto" is among the given schedules.
  bool seeks_orders() const { return seeks_orders_; }

  // Whether the layers of the legal plans are split by cost, where `simulate` tries several splits.
  bool splits_by_cost() const;

  // InputError for a space without legal plans: the rule that the first choice breaks. Where nothing divides
  // the GPUs and the batch, it names the plan of the given values.
  [[noreturn]] void refuse() const;

  // Model, cluster and profile, with the plan of a choice.
  Experiment experiment_of(const Choice& choice);

  ScenarioSource source_of(const Choice& choice) const;
  void dispatch(Json& plan, const Choice& choice) const;

 private:
  template <typename Value>
  std::vector<Value> given(const std::string& field, std::vector<Value> otherwise) const;
  void open_fields(const Swept& swept);
  void enumerate();
  void enumerate_replica(Choice choice, int dp);
  void enumerate_schedules(Choice choice);
  void enumerate_states(Choice choice, int replicas);
  std::vector<int> pipelines() const;
  std::vector<int> shardings(int pp, int replicas) const;
  std::vector<int> chunks_of(const Choice& choice) const;
  std::optional<Plan> legal_plan(const Choice& choice);

  ScenarioSource base_;
  Inputs& inputs_;
  std::map<std::string, std::vector<Json>> given_;  // by searched field
  bool splits_layers_ = false;
  bool given_etp_ = false, given_group_ = false, seeks_orders_ = false;
  Experiment base_experiment_;  // its plan without the searched fields
  std::int64_t gpus_ = 0;
  std::vector<Choice> choices_;
  std::map<std::array<int, 5>, Plan> like_;  // by the values that decide the fields not searched
};

}  // namespace rehearse
