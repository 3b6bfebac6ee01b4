// One replica stands for all only where it takes as long as all of them.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "most.h"
#include "run.h"
#include "run/symmetry.h"

namespace rehearse::properties {
namespace {

constexpr double kFoldTolerance = 1e-6;

RC_GTEST_PROP(LegalRun, TakesAsLongWhenEveryRankIsSimulated, ()) {
  const auto run = legal_run();
  if (run->experiment.conditions.has_jitter()) RC_DISCARD("draws differ by rank");
  Experiment unfolded = run->experiment;
  unfolded.fold = Fold::none;
  Loads loads;
  const Preparation all = prepared(unfolded, loads);
  const auto folded = simulated(*run);
  const auto whole = simulated(all.schedule, all.tasks, loads);
  RC_ASSERT(folded.has_value());
  RC_ASSERT(whole.has_value());
  const bool alike = are_symmetric(run->experiment.plan, run->experiment.cluster, run->experiment.conditions);
  const bool is_folded = run->ready.tasks.instances.size() < all.tasks.instances.size();
  const double off = folded->end() / whole->end() - 1;
  RC_CLASSIFY(alike, "replicas are alike");
  RC_CLASSIFY(is_folded, "folded");
  note_most("folded off", std::abs(off));
  if (std::abs(off) > kFoldTolerance)
    RC_FAIL(fmt::format("folded {} s, every rank {} s: {:+.4f} %", folded->end(), whole->end(), 100 * off));
}

}  // namespace
}  // namespace rehearse::properties
