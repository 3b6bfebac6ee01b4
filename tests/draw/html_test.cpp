// A page holds the run to the tick, runs only its own scripts, and takes any name for text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <regex>

#include "base/error.h"
#include "draw/html/base64.h"
#include "draw/html/page.h"
#include "draw/html/report_page.h"
#include "draw/html/sha256.h"
#include "draw/html/timeline_json.h"
#include "result/cases.h"
#include "result/idle.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

// FIPS 180-4's examples (NIST, example values), in base64.
TEST(Sha256, MeetsThePublishedExamples) {
  EXPECT_EQ(html::sha256_base64(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
  EXPECT_EQ(html::sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
  EXPECT_EQ(html::sha256_base64("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
  EXPECT_EQ(html::sha256_base64(std::string(1'000'000, 'a')), "zcduXJkU+5KBocfihNc+Z/GAmkiklyAOBG05zMcRLNA=");
}

// RFC 4648, section 10.
TEST(Base64, MeetsThePublishedExamples) {
  EXPECT_EQ(html::base64(""), "");
  EXPECT_EQ(html::base64("f"), "Zg==");
  EXPECT_EQ(html::base64("fo"), "Zm8=");
  EXPECT_EQ(html::base64("foobar"), "Zm9vYmFy");
}

std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

std::string page_of(const test::Case& run, const html::RunOrigin& origin = {}) {
  return html::write_report_page(run.timeline, run.schedule, run.work, run.report, origin);
}

const test::Durations kDurations{1, 2, 0.25, 0.5, 0.1};

TEST(ReportPage, TakesAnyNameForText) {
  Model model = test::small_model();
  model.name = "<script>alert(1)</script><!-- \" ' & \xff";
  html::RunOrigin origin;
  origin.command = "rehearse </script><script>alert(2)</script>";
  origin.scenario = {{"model", "</script><!--<script>"}};
  const std::string page =
      page_of(test::make_case(test::small_plan(4, 1, 8), kDurations, false, model), origin);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(count(page, "</script>"), 2u) << "the data's and the program's";
  EXPECT_EQ(count(page, "<!--"), 1u) << "the licence";
  EXPECT_THAT(page, HasSubstr("<title>&lt;script&gt;alert(1)"));
  const Json data = Json::parse(between(page, "id=\"data\">", "</script>"));
  EXPECT_EQ(data["command"], origin.command);
  EXPECT_EQ(data["scenario"], origin.scenario);
}

// U+202E would reverse the text after it.
TEST(ReportPage, ShowsMarksOfDirectionAsTheirNumber) {
  Model model = test::small_model();
  model.name = "a\u202eb";
  const std::string page = page_of(test::make_case(test::small_plan(4, 1, 8), kDurations, false, model));
  EXPECT_THAT(page, Not(HasSubstr("\u202e")));
  const Json data = Json::parse(between(page, "id=\"data\">", "</script>"));
  EXPECT_EQ(data["report"]["model"]["name"], "a\\u{202e}b");
}

TEST(ReportPage, AllowsItsOwnScriptAndStyleAndNothingElse) {
  const std::string page = page_of(test::make_case(test::small_plan(2, 1, 4), kDurations));
  const std::string script = between(page, "</script>\n<script>", "</script>");
  const std::string style = between(page, "<style>", "</style>");
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\"");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("script-src 'sha256-" + html::sha256_base64(script) + "';"));
  EXPECT_THAT(policy, HasSubstr("style-src 'sha256-" + html::sha256_base64(style) + "';"));
  EXPECT_THAT(script, HasSubstr("uPlot"));
  EXPECT_THAT(page, HasSubstr("The MIT License (MIT)"));
  for (const char* loader : {"src=\"http", "href=\"http", "@import", "import("})
    EXPECT_THAT(page, Not(HasSubstr(loader))) << loader;
}

TEST(ReportPage, IsTheSameEveryTime) {
  const auto page = [] { return page_of(test::make_case(test::small_plan(4, 2, 8, 2), kDurations)); };
  EXPECT_EQ(page(), page());
}

TEST(ReportPage, RefusesATimelineOfAnotherSchedule) {
  test::Case run = test::make_case(test::small_plan(2, 1, 4), kDurations);
  run.timeline.ranks.front().spans.pop_back();
  EXPECT_THROW(page_of(run), InputError);
}

RC_GTEST_PROP(TimelineJson, GivesEverySpanBackToTheTick, ()) {
  const int pp = *rc::gen::element(1, 2, 4), vpp = *rc::gen::element(1, 2);
  const int microbatches = pp * *rc::gen::inRange(1, 5);
  const double scale = *rc::gen::element(1e-5, 1e-3, 1.0, 100.0);
  const test::Case run = test::make_case(test::small_plan(pp, pp > 1 ? vpp : 1, microbatches, 2),
                                         {scale, 2 * scale, scale / 7, scale / 3, scale / 9});
  const Json json = html::timeline_json(run.timeline, run.schedule, run.report);
  const double tick_s = json["tick_s"];
  RC_ASSERT(std::abs(json["end"].get<double>() * tick_s - run.report.step_time_s) <= tick_s);
  RC_ASSERT(json["rows"].size() == static_cast<std::size_t>(pp));
  for (const Json& row : json["rows"]) {
    const TimelineRank& rank = run.timeline.ranks[row["pipeline_rank"]];
    const RankOps& ops = run.schedule.ranks[row["pipeline_rank"]];
    std::vector<std::vector<Span>> expected(kStreams);
    for (std::size_t i = 0; i < ops.size(); ++i)
      expected[static_cast<std::size_t>(ops[i].stream)].push_back(rank.spans[i]);
    std::size_t lanes = 0;
    for (const auto& spans : expected) lanes += spans.empty() ? 0 : 1;
    RC_ASSERT(row["lanes"].size() == lanes);
    for (const Json& lane : row["lanes"]) {
      const std::vector<Span>& spans = expected[lane["stream"]];
      RC_ASSERT(lane["begin"].size() == spans.size());
      std::int64_t at = 0;
      for (std::size_t i = 0; i < spans.size(); ++i) {
        const std::int64_t begin = at + lane["begin"][i].get<std::int64_t>();
        at = begin + lane["length"][i].get<std::int64_t>();
        RC_ASSERT(begin == std::llround(spans[i].begin / tick_s));
        RC_ASSERT(at == std::llround(spans[i].end / tick_s));
      }
    }
  }
}

RC_GTEST_PROP(GapParts, TileTheGapAndMoveAsLongAsItIsExposed, ()) {
  const int pp = *rc::gen::element(2, 3, 4), microbatches = *rc::gen::inRange(1, 9);
  const auto time = [] { return 0.1 * *rc::gen::inRange(1, 20); };
  const test::Case run =
      test::make_case(test::small_plan(pp, 1, microbatches, 2), {time(), time(), time(), time(), time()});
  for (const TimelineRank& rank : run.timeline.ranks) {
    const RankOps& ops = run.schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    for (const Gap& gap : compute_gaps(rank, ops, run.report.step_time_s)) {
      double at = gap.begin, moving = 0;
      for (const GapPart& part : parts_of(gap, rank)) {
        RC_ASSERT(part.begin == at);
        RC_ASSERT(part.end > part.begin);
        at = part.end;
        if (!part.moves) continue;
        const Span& span = rank.spans[static_cast<std::size_t>(part.op)];
        RC_ASSERT(span.begin <= part.begin && part.end <= span.end);
        moving += part.end - part.begin;
      }
      RC_ASSERT(at == gap.end);
      RC_ASSERT(std::abs(moving - exposed(gap, rank, ops).total()) < 1e-12);
    }
  }
}

TEST(MemoryJson, ReachesThePeakOfEveryRankItShows) {
  const test::Case run = test::make_case(test::small_plan(4, 1, 8), kDurations);
  const Json json = html::memory_json(run.timeline, run.schedule, run.report, run.work);
  ASSERT_EQ(json["ranks"].size(), 4u);
  for (const Json& rank : json["ranks"]) {
    const std::vector<double> bytes = rank["bytes"];
    EXPECT_EQ(bytes.size(), json["time_s"].size());
    EXPECT_NEAR(*std::ranges::max_element(bytes), run.report.memory[rank["rank"]].peak_bytes, 1);
    EXPECT_GE(*std::ranges::min_element(bytes), rank["state_bytes"].get<double>());
  }
}

TEST(TimelineJson, StaysSmallForAHundredThousandSpans) {
  const test::Case run = test::make_case(test::small_plan(8, 1, 2000), kDurations);
  std::size_t spans = 0;
  for (const TimelineRank& rank : run.timeline.ranks) spans += rank.spans.size();
  ASSERT_GT(spans, 85'000u);
  EXPECT_LT(html::timeline_json(run.timeline, run.schedule, run.report).dump().size(), 40 * spans);
}

}  // namespace
}  // namespace rehearse
