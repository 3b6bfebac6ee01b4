// The scatter of predictions is well-formed, complete and the same every time.
#include "draw/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>

#include "xml.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<Comparison> kRuns = {{"a<b>", "x", 1, 1.1}, {"second", "y&z", 20, 18}};

TEST(Scatter, IsWellFormedWhateverTheNames) {
  const std::string picture = draw_scatter("<runs>", kRuns, 0.1);
  EXPECT_EQ(test::xml_error(picture), "");
  EXPECT_THAT(picture, HasSubstr("a&lt;b&gt;: 1 s measured, 1.1 s predicted"));
  EXPECT_EQ(picture, draw_scatter("<runs>", kRuns, 0.1));
}

TEST(Scatter, PutsWhatAgreesOnTheDiagonal) {
  const std::string picture =
      draw_scatter("", {{"same", "x", 10, 10}, {"low", "x", 1, 1}, {"high", "x", 100, 100}}, 0.1);
  // One to a hundred seconds over 620 pixels from (80, 680) to (700, 60).
  EXPECT_THAT(picture, HasSubstr("translate(390 370)"));
}

// Each has a shape and a colour of its own: of its point, and of its entry in the legend.
TEST(Scatter, TellsTwentyFourFamiliesApart) {
  std::vector<Comparison> runs;
  for (int i = 0; i < 24; ++i) runs.push_back({"run", "family " + std::to_string(i), 1.0 + i, 1.0 + i});
  const std::string picture = draw_scatter("", runs, 0.1);
  EXPECT_EQ(test::xml_error(picture), "");
  std::map<std::string, int> marks;
  const std::regex mark(R"re(scale\(.7\)" (d="[^"]*" fill="[^"]*"))re");
  for (std::sregex_iterator at(picture.begin(), picture.end(), mark), end; at != end; ++at) ++marks[(*at)[1]];
  EXPECT_EQ(marks.size(), 24U);
  for (const auto& [look, times] : marks) EXPECT_EQ(times, 2) << look;
}

TEST(Scatter, LeavesOutWhatWasNotPredicted) {
  EXPECT_THAT(draw_scatter("", {{"missing", "x", 10, 0}}, 0.1), Not(HasSubstr("missing")));
}

}  // namespace
}  // namespace rehearse
