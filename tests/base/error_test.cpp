#include "base/error.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(Violation, SaysWhereWhichRuleWhichValuesAndTheNearest) {
  const Violation violation{"plan.json", "/plan/vpp", "layers must divide", "layers = 80, pp x vpp = 32",
                            "vpp = 1 or 5"};
  EXPECT_EQ(
      to_string(violation),
      "plan.json: /plan/vpp: layers must divide (layers = 80, pp x vpp = 32); nearest legal: vpp = 1 or 5");
}

TEST(Violation, LeavesOutWhatDoesNotApply) {
  EXPECT_EQ(to_string(Violation{"", "--pp", "must be positive", "", ""}), "--pp: must be positive");
}

TEST(InputError, ListsEveryViolationOnItsLine) {
  const InputError error({{"a", "", "first", "", ""}, {"b", "", "second", "", ""}});
  EXPECT_STREQ(error.what(), "a: first\nb: second");
  EXPECT_EQ(error.violations().size(), 2U);
}

TEST(NearestName, FindsAMisspelling) {
  EXPECT_EQ(nearest_name("lama2-7b", {"gpt2", "llama2-7b", "llama2-70b"}), "llama2-7b");
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("mixtral-8x7b", {"gpt2", "selene"}), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

TEST(Join, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(join({}), "");
}

}  // namespace
}  // namespace rehearse
