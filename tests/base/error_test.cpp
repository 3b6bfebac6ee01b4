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

TEST(Violation, ShowsTheEndsOfALongText) {
  const std::string said = to_string(Violation{"", "", "rule", std::string(5000, 'a') + "z", ""});
  EXPECT_LT(said.size(), 1600U);
  EXPECT_NE(said.find("a ... a"), std::string::npos);
  EXPECT_TRUE(said.ends_with("z)"));
}

TEST(Violation, WritesBytesThatAreNoCharacterAsNumbers) {
  const auto shown = [](const std::string& values) { return to_string(Violation{"", "", "", values, ""}); };
  EXPECT_EQ(shown("a\x1b[2J\n\x7f"), " (a\\x1b[2J\\x0a\\x7f)");
  EXPECT_EQ(shown("\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), " (\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80)");
  EXPECT_EQ(shown("\xff\xc0\xaf\xe2\x82"), " (\\xff\\xc0\\xaf\\xe2\\x82)");
  EXPECT_EQ(shown("\xed\xa0\x80\xc2\x9b"), " (\\xed\\xa0\\x80\\xc2\\x9b)");
}

TEST(InputError, ListsEveryViolationOnItsLine) {
  const InputError error({{"a", "", "first", "", ""}, {"b", "", "second", "", ""}});
  EXPECT_STREQ(error.what(), "a: first\nb: second");
  EXPECT_EQ(error.violations().size(), 2U);
}

TEST(NearestName, FindsAMisspelling) {
  EXPECT_EQ(nearest_name("lama2-7b", {"gpt2", "llama2-7b", "llama2-70b"}), "llama2-7b");
}

TEST(NearestName, OfAWholeFileIsFoundAtOnce) {
  EXPECT_EQ(nearest_name(std::string(50'000'000, 'a'), {"gpt2", std::string(40'000'000, 'b')}), "");
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
