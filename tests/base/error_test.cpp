#include "base/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

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

// Levenshtein's distance by its recurrence.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j)
      cost[i][j] = i == 0   ? j
                   : j == 0 ? i
                            : std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                                        cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
  return cost[a.size()][b.size()];
}

TEST(NearestName, IsTheFirstOfTheLeastDistanceWithinAThird) {
  std::mt19937 random(1);
  const auto word = [&] {
    std::string letters(3 + random() % 8, ' ');
    for (char& letter : letters) letter = "abcA!1"[random() % 6];
    return letters;
  };
  for (int i = 0; i < 2000; ++i) {
    const std::string name = word();
    const std::vector<std::string> candidates = {word(), word(), word(), name.substr(1) + "b"};
    std::string nearest;
    std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;
    for (const std::string& candidate : candidates)
      if (distance(name, candidate) < least) {
        nearest = candidate;
        least = distance(name, candidate);
      }
    EXPECT_EQ(nearest_name(name, candidates), nearest) << name;
  }
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
