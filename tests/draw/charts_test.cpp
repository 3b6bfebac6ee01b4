// Curves, heat maps and bars: well-formed, the same every time, and every value where it belongs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "draw/bars.h"
#include "draw/chart.h"
#include "draw/heatmap.h"
#include "draw/text.h"
#include "xml.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

Chart two_curves() {
  Chart chart;
  chart.title = "<Step> & time";
  chart.held = "Fixed: a \"model\".";
  chart.x_label = "microbatches";
  chart.y_label = "time (s)";
  chart.series = {{"a<b", {{1, 10, true, "first"}, {3, 20, false, "second"}}, 0, false, true},
                  {"closed form", {{1, 5, true, ""}, {3, 5, true, ""}}, 1, true, true}};
  return chart;
}

TEST(ChartPicture, IsWellFormedWhateverTheNamesAndTheSameEveryTime) {
  const std::string picture = draw_chart(two_curves());
  EXPECT_EQ(test::xml_error(picture), "");
  EXPECT_EQ(picture, draw_chart(two_curves()));
  EXPECT_THAT(picture, HasSubstr("&lt;Step&gt; &amp; time"));
  EXPECT_THAT(picture, HasSubstr("a&lt;b"));
  EXPECT_THAT(picture, Not(HasSubstr("style="))) << "a page may forbid inline styles";
}

TEST(ChartPicture, PutsPointsByTheirValues) {
  Chart chart = two_curves();
  chart.series.resize(1);
  chart.series[0].points = {{1, 10, true, ""}, {2, 10, true, ""}, {3, 20, true, ""}};
  // One series and no legend: the plot spans 78 to 890, its points begin and end 24 within.
  EXPECT_THAT(draw_chart(chart), HasSubstr("M102 ")) << "first x";
  EXPECT_THAT(draw_chart(chart), HasSubstr("L484 ")) << "the middle of both";
  EXPECT_THAT(draw_chart(chart), HasSubstr("L866 ")) << "last x";
  chart.logarithmic_x = true;
  chart.series[0].points[1].x = std::sqrt(3);
  EXPECT_THAT(draw_chart(chart), HasSubstr("L484 ")) << "the geometric middle";
}

TEST(ChartPicture, MarksWhatDoesNotFitAndWhatIsRefused) {
  Chart chart = two_curves();
  EXPECT_THAT(draw_chart(chart), HasSubstr("does not fit in memory"));
  EXPECT_THAT(draw_chart(chart), Not(HasSubstr("illegal")));
  chart.refused = {{2, "tp 3: no"}, {2, "tp 5: no"}};
  const std::string picture = draw_chart(chart);
  EXPECT_THAT(picture, HasSubstr("illegal or failed"));
  EXPECT_THAT(picture, HasSubstr("<title>tp 3: no; tp 5: no</title>"));
  EXPECT_THAT(picture, HasSubstr(">2</text>")) << "two at one place";
}

TEST(ChartPicture, MarksWhatDoesNotFitInTheLegendAsTheSeriesDoes) {
  Chart chart = two_curves();
  chart.series.resize(1);
  for (std::size_t style : {0U, 1U}) {
    chart.series[0].style = style;
    chart.series[0].points = {{1, 10, true, ""}, {2, 20, false, ""}};
    const std::string hollow = style == 0 ? R"(m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z" fill="#fff")"
                                          : R"(m-4-4h8v8h-8z" fill="#fff")";
    const std::string picture = draw_chart(chart);
    const std::size_t of_point = picture.find(hollow);
    ASSERT_NE(of_point, std::string::npos);
    EXPECT_NE(picture.find(hollow, of_point + 1), std::string::npos) << "the legend's";
  }
}

TEST(ChartPicture, BreaksWhatWasHeldFixedWithinItsWidth) {
  Chart chart = two_curves();
  chart.held = "Fixed:";
  for (int i = 0; i < 60; ++i) chart.held += " tp 8,";
  std::istringstream picture(draw_chart(chart));
  std::size_t words = 0, lines = 0;
  for (std::string line; std::getline(picture, line);) {
    const std::size_t begin = line.find("#444\">"), end = line.find("</text>");
    if (begin == std::string::npos) continue;
    const std::string held = line.substr(begin + 6, end - begin - 6);
    EXPECT_LE(svg::text_width(held, 12.5), 920 - 2 * 16) << held;
    words += count(held, "tp 8,");
    ++lines;
  }
  EXPECT_EQ(words, 60U);
  EXPECT_GE(lines, 3U);
}

TEST(ChartPicture, WithoutAnyPointIsAnEmptyPlot) {
  EXPECT_EQ(test::xml_error(draw_chart({})), "");
}

TEST(ChartPicture, NamesAtMostEighteenCurvesAndCountsTheOthers) {
  Chart chart = two_curves();
  for (std::size_t i = 0; i < 40; ++i)
    chart.series.push_back({"curve " + std::to_string(i), {{1, 1, true, ""}}, i, false, true});
  EXPECT_THAT(draw_chart(chart), HasSubstr("and 24 more"));
}

Heatmap small_map() {
  Heatmap map;
  map.title = "map";
  map.x_values = {"1", "2"};
  map.y_values = {"low", "high"};
  map.cells = {{{1.0, true, "one", ""}, {2.0, true, "two", ""}},
               {{9.0, false, "nine", "too large"}, {{}, true, "illegal", "why <not>"}}};
  return map;
}

TEST(HeatmapPicture, FramesTheBestThatFits) {
  const std::string picture = draw_heatmap(small_map());
  EXPECT_EQ(test::xml_error(picture), "");
  // 680 pixels for two columns from 110 on: the second one begins at 450.
  EXPECT_THAT(picture, HasSubstr(R"(<rect x="451.5")"));
  EXPECT_EQ(count(picture, "url(#nofit)"), 1u);
  EXPECT_THAT(picture, HasSubstr("why &lt;not&gt;"));
}

TEST(HeatmapPicture, ColoursEndsOfTheScaleAsViridis) {
  const std::string picture = draw_heatmap(small_map());
  EXPECT_THAT(picture, HasSubstr("#440154"));
  EXPECT_THAT(picture, HasSubstr("#fde725"));
}

TEST(BarPicture, DrawsPartsToScaleAndLeavesOutUnusedOnes) {
  StackedBars bars;
  bars.parts = {{"compute", "#111111"}, {"bubble", "#222222"}, {"absent", "#333333"}};
  bars.bars = {
      {"a", {3, 1, 0}, true, "4 s", ""}, {"b", {2, 0, 0}, true, "2 s", ""}, {"c", {}, true, "illegal", ""}};
  const std::string picture = draw_bars(bars);
  EXPECT_EQ(test::xml_error(picture), "");
  EXPECT_THAT(picture, Not(HasSubstr("absent")));
  EXPECT_THAT(picture, HasSubstr("illegal"));
  // Names are one letter: 35 pixels; 695 are left for four seconds.
  EXPECT_THAT(picture, HasSubstr(R"(width="521.25" height="24" fill="#111111")"));
  EXPECT_THAT(picture, HasSubstr(R"(width="347.5" height="24" fill="#111111")"));
}

}  // namespace
}  // namespace rehearse
