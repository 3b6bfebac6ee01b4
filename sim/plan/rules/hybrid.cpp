#include <fmt/core.h>

#include "plan/frameworks/traits.h"
#include "plan/limits.h"
#include "plan/rules/rules.h"

namespace rehearse {

namespace {

class HybridRules {
 public:
  HybridRules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken)
      : plan_(plan), model_(model), broken_(broken) {}

  void check() {
    const bool scans = model_.state_space || model_.pattern.find('M') != std::string::npos;
    if (scans && !traits(plan_).trains_hybrids)
      report("framework", "hybrid models need framework megatron-core", to_string(plan_.framework),
             "megatron-core");
    if (plan_.overlap_experts)
      report("overlap_experts", "overlap of experts does not support hybrid models", "on", "off");
    if (model_.state_space) state_space(*model_.state_space);
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    broken_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  // core/ssm/mamba_mixer.py and mamba_context_parallel.py. There, each rank may also hold a copy of a group.
  void state_space(const StateSpace& space) {
    divides("tp", plan_.tp, space.groups);
    if (space.groups % plan_.tp == 0) divides("cp", plan_.cp, space.groups / plan_.tp);
    if (plan_.seq % space.chunk != 0)
      report("seq", "the sequence must be a multiple of the state space's chunk",
             fmt::format("seq = {}, chunk = {}", plan_.seq, space.chunk),
             multiples_near("seq", plan_.seq, kMaxTokens, space.chunk));
  }

  void divides(const std::string& field, int degree, std::int64_t groups) {
    if (groups % degree == 0) return;
    report(field, fmt::format("{} must divide the groups of the state space", field),
           fmt::format("groups = {}, {} = {}", groups, field, degree),
           numbers_near(field, degree, groups, [groups](std::int64_t n) { return groups % n == 0; }));
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

void add_hybrid_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken) {
  if (!model.pattern.empty() || model.state_space) HybridRules(plan, model, broken).check();
}

}  // namespace rehearse
