// Which rules does a plan break? Each file of this folder has the rules of one subject, and broken_rules()
// (plan/plan.h) calls them all. Each function adds the rules that the plan breaks. It requires degrees and a
// batch of at least 1.
#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/rules/broken_rule.h"

namespace rehearse {

// Schedules against model chunks, microbatches and groups of these.
void add_pipeline_rules(const Plan& plan, std::vector<BrokenRule>& broken);

// State divided among data-parallel ranks.
void add_zero_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Experts over ranks: ep, etp, moe_imbalance, moe_capacity.
void add_expert_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Sequences over ranks: cp, cp_exchange, tp_comm_overlap.
void add_context_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Layers of hybrid models: their state spaces over ranks, and the frameworks that run them.
void add_hybrid_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Layers that mix tokens in place of attention, and indexers that choose its keys, over ranks.
void add_recurrence_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Images and the tower that they go through.
void add_tower_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

void add_recompute_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Precision of weights, gradients and optimizer state.
void add_recipe_rules(const Plan& plan, std::vector<BrokenRule>& broken);

// Plans whose host waits for each kernel (launch_blocking).
void add_blocking_rules(const Plan& plan, std::vector<BrokenRule>& broken);

}  // namespace rehearse
