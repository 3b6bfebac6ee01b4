// The drawn runs have every feature, and few of them are illegal.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdio>

#include "coverage.h"
#include "run.h"

namespace rehearse::properties {
namespace {

constexpr int kFewestRuns = 1000;  // the rarest feature has 1 of 200

TEST(DrawnRuns, HaveEveryFeatureAndAreMostlyLegal) {
  const auto& parameters = rc::detail::configuration().testParams;
  rc::Random random(parameters.seed);
  while (coverage().runs() < std::max(kFewestRuns, parameters.maxSuccess))
    legal_run(any_run()(random.split(), rc::kNominalSize).value());
  const std::set<std::string> wanted = wanted_features();
  std::printf("%zu features wanted\n", wanted.size());
  for (const std::string& feature : wanted)
    EXPECT_TRUE(coverage().features().contains(feature)) << "no legal run has: " << feature;
  EXPECT_LT(coverage().discard_rate(), 0.1);
  std::fputs(coverage().table().c_str(), stdout);
}

}  // namespace
}  // namespace rehearse::properties
