// One replica that stands for all takes as long as all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "alike.h"
#include "most.h"
#include "run.h"

namespace rehearse::properties {
namespace {

constexpr double kExact = 1e-6;
// Where replicas are not alike the one that is simulated stands for others that fare better or worse: 1 run of 11
// was off by more than kExact, few by more than a tenth, the worst of 4,000 by 84 %
// (ZeRO's groups of three scattered over a torus). No more is promised than the order of magnitude.
constexpr double kUnlike = 0.95;

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
  const bool alike = replicas_are_alike(run->experiment);
  const double off = folded->end() / whole->end() - 1;
  RC_CLASSIFY(alike, "replicas are alike");
  RC_CLASSIFY(std::abs(off) > kExact, "folding shows");
  note_most(alike ? "folded off, replicas alike" : "folded off, replicas not alike", std::abs(off));
  if (std::abs(off) > (alike ? kExact : kUnlike))
    RC_FAIL(fmt::format("folded {} s, every rank {} s: {:+.4f} %, {}", folded->end(), whole->end(), 100 * off,
                        alike ? "though replicas are alike" : "replicas are not alike"));
}

}  // namespace
}  // namespace rehearse::properties
