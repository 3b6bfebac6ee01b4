#include <fmt/core.h>

#include "plan/rules/rules.h"

namespace rehearse {

namespace {

class RecurrenceRules {
 public:
  RecurrenceRules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken)
      : plan_(plan), model_(model), broken_(broken) {}

  void check() {
    const bool is_mixed = model_.recurrence || model_.indexer || model_.compressed;
    if (is_mixed && plan_.cp > 1)
      report("cp",
             fmt::format("cp must be 1: no kernels are known here for {} over context-parallel ranks",
                         model_.recurrence   ? "a recurrence"
                         : model_.compressed ? "compressed keys"
                                             : "an indexer"),
             fmt::format("cp = {}", plan_.cp), "cp = 1");
    if (model_.recurrence) share_heads(*model_.recurrence);
    const bool is_local = model_.encoder_layers > 0 || model_.per_layer_width > 0 || model_.alternating > 1;
    if (is_local && plan_.pp > 1)
      report("pp",
             fmt::format("pp must be 1: every stage would need {}",
                         model_.encoder_layers > 0 ? "the output of the encoder"
                                                   : "the embeddings of its layers and the copies of rows"),
             fmt::format("pp = {}", plan_.pp), "pp = 1");
    if (model_.compressed) share_groups(model_.compressed->groups);
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    broken_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  // The scan of Mamba-1 derives its steps from all channels.
  void share_heads(const Recurrence& of) {
    if (of.kind == RecurrenceKind::selective_scan) {
      if (plan_.tp > 1)
        report("tp", "tp must be 1: no tensor parallelism of Mamba-1 is known here",
               fmt::format("tp = {}", plan_.tp), "tp = 1");
      return;
    }
    if (of.key_heads % plan_.tp == 0) return;
    report(
        "tp", "tp must divide the key heads of the recurrence",
        fmt::format("key heads = {}, tp = {}", of.key_heads, plan_.tp),
        numbers_near("tp", plan_.tp, of.key_heads, [&of](std::int64_t n) { return of.key_heads % n == 0; }));
  }

  void share_groups(std::int64_t groups) {
    if (groups % plan_.tp == 0) return;
    report("tp", "tp must divide the groups of heads", fmt::format("groups = {}, tp = {}", groups, plan_.tp),
           numbers_near("tp", plan_.tp, groups, [groups](std::int64_t n) { return groups % n == 0; }));
  }

  const Plan& plan_;
  const Model& model_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

void add_recurrence_rules(const Plan& plan, const Model& model, std::vector<BrokenRule>& broken) {
  RecurrenceRules(plan, model, broken).check();
}

}  // namespace rehearse
