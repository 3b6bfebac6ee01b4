// Rules of the splits beyond tensor, pipeline and data parallelism.
#pragma once

#include <vector>

#include "plan/broken_rule.h"
#include "plan/plan.h"

namespace rehearse {

// Experts over ranks: ep, etp, moe_imbalance, moe_capacity. Degrees must be in range.
void add_expert_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// The layers of hybrid models: their state spaces over ranks, and who runs them. Degrees must be in range.
void add_hybrid_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// What mixes tokens in attention's place, and what chooses its keys, over ranks. Degrees must be in range.
void add_recurrence_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

// Sequences over ranks: cp, cp_exchange, tp_comm_overlap. Degrees must be in range.
void add_context_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken);

}  // namespace rehearse
