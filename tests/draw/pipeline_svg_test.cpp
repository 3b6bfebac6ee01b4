#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/error.h"
#include "draw/axis.h"
#include "draw/boxes.h"
#include "draw/pipeline.h"
#include "draw/text.h"
#include "result/cases.h"
#include "xml.h"

namespace rehearse {
namespace {

using namespace test;
using testing::HasSubstr;
using testing::Not;

std::string draw(const Case& made) {
  return draw_pipeline(made.timeline, made.schedule, made.report);
}

TEST(PipelineSvg, SaysWhatWasHeldFixedAndWhatCameOut) {
  const std::string svg = draw(make_case(small_plan(2, 2, 4), Durations{1, 2, 0.1, 0, 0.2}));
  for (const char* part : {"small on test cluster", "tp 1, pp 2, vpp 2, dp 1", "interleaved-1f1b, m = 4",
                           "Step time", "compute idle mean", "(s)", "forward, chunk 0", "backward, chunk 1",
                           "optimizer step", "pipeline message", "idle"})
    EXPECT_THAT(svg, HasSubstr(part));
  EXPECT_THAT(svg, Not(HasSubstr("gradient reduction")));
  EXPECT_THAT(svg, Not(HasSubstr("not drawn")));
}

TEST(PipelineSvg, CallsNoBubbleIdealThatAnOrderMayUndercut) {
  Case made = make_case(small_plan(2, 2, 4), Durations{1, 2, 0.1, 0, 0.2});
  EXPECT_THAT(draw(made), HasSubstr("ideal bubble"));
  made.report.facts.bubble_ideal = 0.1;
  EXPECT_THAT(draw(made), testing::AllOf(HasSubstr("bubble in equal stages"), Not(HasSubstr("ideal"))));
}

TEST(PipelineSvg, EscapesNames) {
  Case made = make_case(small_plan(2, 1, 2), Durations{});
  made.report.model.name = "<script>alert(1)&\"'</script>\x01\xff";
  const std::string svg = draw(made);
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;alert(1)&amp;"));
  EXPECT_EQ(xml_error(svg), "");
}

RC_GTEST_PROP(PipelineSvg, IsWellFormedAndTheSameEachTime, ()) {
  const int pp = *rc::gen::inRange(1, 6);
  const int vpp = pp > 1 ? *rc::gen::inRange(1, 4) : 1;
  const Plan plan = small_plan(pp, vpp, pp * *rc::gen::inRange(1, 6), *rc::gen::inRange(1, 3));
  const auto seconds = [] { return 1e-5 * *rc::gen::inRange(0, 1000); };
  const Case made = make_case(plan, Durations{seconds(), seconds(), seconds(), seconds(), seconds()}, false,
                              small_model(pp * vpp));
  const std::string svg = draw(made);
  RC_ASSERT(xml_error(svg) == "");
  RC_ASSERT(svg == draw(made));
  RC_ASSERT(svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos);
}

TEST(XmlError, FindsWhatIsNotWellFormed) {
  EXPECT_EQ(xml_error("<a b=\"c\"><d/>x &lt; y</a>"), "");
  for (const char* xml :
       {"<a>", "<a></b>", "<a b></a>", "<a b=c></a>", "<a b=\"c></a>", "<a>x & y</a>", "<a>x < y</a>"})
    EXPECT_NE(xml_error(xml), "") << xml;
}

TEST(PipelineSvg, OfABigRunStaysSmallAndSaysWhatIsLeftOut) {
  Plan plan = small_plan(64, 1, 512, 2);
  plan.overlap_p2p = true;
  const std::string svg =
      draw(make_case(plan, Durations{0.01, 0.02, 0.002, 0.05, 0.01}, false, small_model(64)));
  EXPECT_LT(svg.size(), 2'000'000u);
  EXPECT_THAT(svg, HasSubstr("not drawn"));
  EXPECT_THAT(svg, HasSubstr("Only the first and the last part"));
  EXPECT_EQ(xml_error(svg), "");
}

TEST(PipelineSvg, DrawsAtMostSixtyFourRows) {
  const std::string svg = draw(make_case(small_plan(100, 1, 4), Durations{}, false, small_model(100)));
  EXPECT_THAT(svg, HasSubstr("64 of 100 pipeline ranks"));
  EXPECT_THAT(svg, HasSubstr(">rank 31<"));
  EXPECT_THAT(svg, Not(HasSubstr(">rank 32<")));
  EXPECT_THAT(svg, HasSubstr(">rank 68<"));
}

TEST(PipelineSvg, OfNothingIsStillAPicture) {
  Case made = make_case(small_plan(2, 1, 2), Durations{});
  made.timeline = {};
  made.report.step_time_s = 0;
  EXPECT_EQ(xml_error(draw(made)), "");
}

TEST(PipelineSvg, RefusesATimelineOfAnotherSchedule) {
  Case made = make_case(small_plan(2, 1, 2), Durations{});
  made.timeline.ranks[0].spans.pop_back();
  EXPECT_THROW(draw(made), InputError);
}

TEST(SvgBoxes, PartsOfAnOpAreOneBox) {
  const Case made = make_case(small_plan(1, 1, 2, 2), Durations{});
  std::int64_t merged = 0;
  const auto boxes = svg::compute_boxes(made.timeline.ranks[0], made.schedule.ranks[0], 1, 1e-6, merged);
  ASSERT_EQ(boxes.size(), 5u);  // F0 B0 F1 B1 STEP
  EXPECT_DOUBLE_EQ(boxes[3].end - boxes[3].begin, 2);
  EXPECT_EQ(merged, 0);
}

TEST(SvgBoxes, TinyNeighboursOfOneKindAreMerged) {
  Plan plan = small_plan(1, 1, 5);
  plan.schedule = ScheduleName::gpipe;
  const Case made = make_case(plan, Durations{});
  std::int64_t merged = 0;
  const auto boxes = svg::compute_boxes(made.timeline.ranks[0], made.schedule.ranks[0], 1, 5, merged);
  ASSERT_EQ(boxes.size(), 3u);
  EXPECT_EQ(merged, 8);
  EXPECT_DOUBLE_EQ(boxes[0].end, 5);
  EXPECT_EQ(boxes[0].microbatch, -1);
}

TEST(SvgAxis, WindowsCoverTheWholeOrBothEnds) {
  const auto whole = svg::choose_windows(10, 1, 50, 1000, 4, 30);
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_DOUBLE_EQ(whole[0].x(10), 1050);
  const auto parts = svg::choose_windows(1000, 1, 50, 1000, 4, 30);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].begin, 0);
  EXPECT_EQ(parts[1].end, 1000);
  EXPECT_DOUBLE_EQ(parts[0].x(1) - parts[0].x(0), 4);
  EXPECT_DOUBLE_EQ(parts[1].left - parts[0].left - parts[0].width, 30);
}

RC_GTEST_PROP(SvgAxis, TicksLieInTheirWindowAtRoundTimes, ()) {
  const double begin = 1e-4 * *rc::gen::inRange(0, 1000000);
  const double length = 1e-6 * *rc::gen::inRange(1, 1000000000);
  const svg::Window window{begin, begin + length, 60, 1100};
  const auto marks = svg::ticks(window, svg::unit_for(begin + length), 90);
  RC_ASSERT(marks.size() <= 13u);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    RC_ASSERT(marks[i].x >= 60 - 0.01 && marks[i].x <= 1160.02);
    if (i > 0) RC_ASSERT(marks[i].label != marks[i - 1].label);
    if (i > 0) RC_ASSERT(marks[i].x - marks[i - 1].x > 80);
  }
}

TEST(SvgAxis, HasNoEndlessTicksWhereNumbersEnd) {
  const svg::TimeUnit unit{"", 1};
  EXPECT_THAT(svg::ticks({0, 1e308, 0, 100}, unit, 5000), testing::IsEmpty());
  EXPECT_THAT(svg::ticks({0, 0, 0, 100}, unit, 50), testing::IsEmpty());
  const double large = 1e300;
  EXPECT_LE(svg::ticks({large, std::nextafter(large, 1e308), 0, 1000}, unit, 90).size(), 14U);
}

TEST(SvgText, WrapsShortensAndTrims) {
  EXPECT_THAT(svg::wrap("aa bb cc", 5), testing::ElementsAre("aa bb", "cc"));
  EXPECT_EQ(svg::shorten("abcdef", 4), "abc\u2026");
  EXPECT_EQ(svg::shorten("abcd", 4), "abcd");
  EXPECT_EQ(svg::shorten("\u00e4\u00f6\u00fc", 2), "\u00e4\u2026");
  EXPECT_EQ(svg::number(12.50), "12.5");
  EXPECT_EQ(svg::number(-0.001), "0");
  EXPECT_EQ(svg::number(100), "100");
}

TEST(SvgText, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(svg::escape("a<b>\t\xc3\xa4\xc3"), "a&lt;b&gt;?\u00e4?");
  EXPECT_EQ(svg::escape("\xed\xa0\x80"), "???");  // a surrogate
  EXPECT_EQ(svg::escape("\xc0\xaf"), "??");       // overlong
}

}  // namespace
}  // namespace rehearse
