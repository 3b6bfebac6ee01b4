// Which schedules can run which chunks and microbatches?
#include <fmt/core.h>

#include "plan/limits.h"
#include "plan/rules/rules.h"
#include "plan/schedules.h"

namespace rehearse {

namespace {

class PipelineRules {
 public:
  PipelineRules(const Plan& plan, std::vector<BrokenRule>& violations)
      : plan_(plan), violations_(violations) {}

  void add() {
    chunks();
    const std::int64_t unit = plan_.micro_batch * plan_.dp;
    if (plan_.global_batch % unit == 0) microbatches();  // another rule reports a batch that does not divide
  }

 private:
  void report(const std::string& field, std::string rule, std::string values, Remedies remedies) {
    violations_.push_back({"", field, std::move(rule), std::move(values), std::move(remedies)});
  }

  bool interleaves() const { return plan_.schedule == ScheduleName::interleaved && plan_.vpp > 1; }

  void chunks() {
    const std::string name = to_string(plan_.schedule);
    const std::string values = fmt::format("vpp = {}", plan_.vpp);
    if (is_v_shaped(plan_.schedule)) {
      if (plan_.vpp != 2)
        report("vpp", fmt::format("schedule {} needs two model chunks per rank", name), values, "2");
    } else if (plan_.schedule != ScheduleName::interleaved && plan_.vpp > 1) {
      report("vpp", fmt::format("schedule {} needs one model chunk per rank", name), values,
             "1, or schedule = interleaved-1f1b");
    }
    // Without overlap and with pp = 2, both neighbours of a rank are the same rank, and their messages would
    // block each other.
    const int least = plan_.overlap_p2p ? 2 : 3;
    if (interleaves() && plan_.pp < least) {
      report("pp",
             fmt::format("interleaving needs pp >= {} {} overlap of pipeline messages", least,
                         plan_.overlap_p2p ? "with" : "without"),
             fmt::format("pp = {}", plan_.pp), fmt::format("{}, or vpp = 1, or overlap_p2p = on", least));
    }
  }

  void microbatches() {
    const std::int64_t m = plan_.microbatches();
    const int each = traits(plan_.schedule).min_microbatches;
    const std::int64_t least = std::int64_t{each} * plan_.pp;
    if (m < least) {
      report("global_batch",
             fmt::format("{} needs at least {} x pp microbatches", to_string(plan_.schedule), each),
             fmt::format("microbatches = {}, pp = {}", m, plan_.pp),
             std::to_string(least * plan_.micro_batch * plan_.dp));
    }
    if (interleaves()) {
      plan_.microbatch_group == 0 ? groups_of_pp(m) : groups(m);
    } else if (plan_.microbatch_group != 0) {
      report("microbatch_group", "a microbatch group needs interleaved-1f1b with vpp > 1",
             fmt::format("schedule {}, vpp = {}, group = {}", to_string(plan_.schedule), plan_.vpp,
                         plan_.microbatch_group),
             "0");
    }
  }

  void groups_of_pp(std::int64_t m) {
    if (m % plan_.pp == 0) return;
    const std::int64_t unit = plan_.micro_batch * plan_.dp * plan_.pp;
    report("global_batch", "the microbatches must be a multiple of pp (interleaved-1f1b)",
           fmt::format("microbatches = {}, pp = {}", m, plan_.pp),
           multiples_near("global_batch", plan_.global_batch, kMaxSequences, unit));
  }

  // Megatron-LM's rule for --microbatch-group-size-per-virtual-pipeline-stage.
  void groups(std::int64_t m) {
    const auto legal = [m, pp = plan_.pp](std::int64_t group) {
      return group >= pp && group <= m && (m % group == 0 || m % group >= pp);
    };
    if (legal(plan_.microbatch_group)) return;
    report("microbatch_group",
           "a microbatch group must have at least pp microbatches, and so must the last group",
           fmt::format("group = {}, pp = {}, microbatches = {}", plan_.microbatch_group, plan_.pp, m),
           numbers_near("microbatch_group", plan_.microbatch_group, m, legal));
  }

  const Plan& plan_;
  std::vector<BrokenRule>& violations_;
};

}  // namespace

void add_pipeline_rules(const Plan& plan, std::vector<BrokenRule>& violations) {
  PipelineRules(plan, violations).add();
}

}  // namespace rehearse
