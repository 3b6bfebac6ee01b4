// The scatter of predictions is well-formed, complete and the same every time.
#include "result/svg/scatter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(picture, HasSubstr(R"(<circle cx="390" cy="370")"));
}

TEST(Scatter, LeavesOutWhatWasNotPredicted) {
  EXPECT_THAT(draw_scatter("", {{"missing", "x", 10, 0}}, 0.1), Not(HasSubstr("missing")));
}

}  // namespace
}  // namespace rehearse
