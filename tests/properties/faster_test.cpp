// A better figure of the hardware, as a user sets it, never makes a step slower.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "better.h"
#include "most.h"
#include "run/reference.h"

namespace rehearse::properties {
namespace {

// Bounds are relative to the step. Every op keeps its place in its stream. So the longest path through the
// same ops is never longer when each op is shorter: Graham's anomalies (1969) need lists that are distributed
// anew. The remaining differences have other causes.
// A collective that begins or ends sooner is concurrent with other kernels, which more ops may wait for.
constexpr double kOtherKernels = 0.003;
// A faster link takes more of the memory bandwidth for the same bytes. Passes that alternate lose the largest
// share of their exchanges in all of them (ExpertPhases::taken). With less latency NCCL's model may choose
// another protocol, which is slower where broadcasts begin at different ranks (nccl::round_s): up to 0.3 %
// were observed. On a torus, time beyond the bytes at the highest rate counts as a message's start.
constexpr double kLinks = 0.01;
constexpr double kNegligible = 1e-9;

// Where flows share links, an earlier flow may meet a flow that it used to miss. It may then delay a flow
// that the last rank waits for.
constexpr double kOtherMeetings = 0.02;

void require_no_slower(const std::string& what, double before, double after, double allowed) {
  RC_CLASSIFY(after > before * (1 + kNegligible), fmt::format("slower: {}", what));
  if (after > before * (1 + kNegligible)) note_most("slower: " + what, after / before - 1);
  if (after > before * (1 + allowed) + 1e-8)  // a few times SimGrid's resolution
    RC_FAIL(fmt::format("{}: {} s before, {} s after: {:+.4f} %", what, before, after,
                        100 * (after / before - 1)));
}

// Layers go where they cost least: with another figure to other stages, perhaps to worse ones.
bool is_laid_out_by_cost(const Run& run) {
  const Json& plan = run.source.json.at("plan");
  return plan.contains("layers_per_stage") && plan.at("layers_per_stage") == "auto";
}

RC_GTEST_PROP(LegalRun, IsNoSlowerWithABetterFigure, ()) {
  const auto run = legal_run();
  if (is_laid_out_by_cost(*run)) RC_DISCARD("another figure, another plan");
  const double times = *rc::gen::element(1.05, 1.3, 2.0, 4.0);
  const double before = longest_path_s(run->experiment);
  for (const Better& better : better_figures()) {
    const std::optional<Experiment> changed = improved(*run, better, times);
    if (!changed) continue;
    const double allowed = better.of_links ? kLinks : kOtherKernels;
    require_no_slower(better.name, before, longest_path_s(*changed), allowed);
  }
}

RC_GTEST_PROP(LegalRun, IsNoSlowerWithABetterFigureWhereFlowsMeet, ()) {
  const auto run = legal_run();
  const Better better = *rc::gen::elementOf(better_figures());
  const std::optional<Experiment> changed = improved(*run, better, *rc::gen::element(1.05, 1.3, 2.0, 4.0));
  if (!changed || is_laid_out_by_cost(*run)) RC_DISCARD("no such figure, or another plan");
  Loads loads;
  const Preparation ready = prepared(*changed, loads);
  const auto before = simulated(*run), after = simulated(ready.schedule, ready.tasks, loads);
  RC_ASSERT(before.has_value());
  RC_ASSERT(after.has_value());
  require_no_slower(better.name + ", simulated", before->end(), after->end(), kOtherMeetings);
}

}  // namespace
}  // namespace rehearse::properties
