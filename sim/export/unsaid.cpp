#include "export/unsaid.h"

#include "plan/fields.h"
#include "plan/frameworks/traits.h"
#include "plan/schedules.h"

namespace rehearse {

namespace {

// 0 means sharding among all replicas.
Plan with_plain_sharding(Plan plan) {
  if (plan.zero_shard == plan.dp * plan.cp) plan.zero_shard = 0;
  return plan;
}

}  // namespace

Plan untold(const Model& model, const Plan& plan, Framework framework) {
  Plan own;
  own.framework = framework;
  own.precision = plan.precision;
  own.tp = plan.tp;
  own.cp = plan.cp;
  own.ep = plan.ep;
  own.dp = plan.dp;
  own.pp = plan.pp;
  own.vpp = plan.vpp;
  own.micro_batch = plan.micro_batch;
  own.global_batch = plan.global_batch;
  own.schedule = plan.schedule;
  own.zero = plan.zero;
  own.zero_shard = plan.zero_shard;
  own.clip_grad = plan.clip_grad;
  own.etp = model.experts ? plan.tp : 1;
  apply_framework(own);
  // As in scenarios. An interleaved schedule of one chunk a rank is called 1f1b.
  const bool is_1f1b = plan.schedule == ScheduleName::interleaved && plan.vpp == 1;
  own.overlap_p2p = traits(plan.schedule).overlaps_p2p && !is_1f1b;
  return own;
}

std::vector<std::string> unsaid(const Model& model, const Plan& plan, const Plan& said) {
  const Plan wanted = with_plain_sharding(plan), given = with_plain_sharding(said);
  std::vector<std::string> names;
  for (const PlanField& field : plan_fields()) {
    const bool of_data = field.key == std::string_view("moe_imbalance");
    if (!of_data && field.differs(wanted, given) && field.matters(plan, model)) names.emplace_back(field.key);
  }
  return names;
}

}  // namespace rehearse
