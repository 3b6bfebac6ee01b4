// The kind of picture follows from the varied fields, and every row is in the picture.
#include "sweep/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "scratch.h"
#include "sweep/plot/fields.h"
#include "sweep/plot/pictures.h"

namespace rehearse::plot {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

SweptField field(const std::string& name, const std::string& pointer, std::vector<Json> values) {
  return {name, pointer, std::move(values)};
}

const SweptField kBatch = field("gbs", "/plan/global_batch", {64, 128, 256});
const SweptField kSchedule = field("schedule", "/plan/schedule", {"1f1b", "gpipe"});
const SweptField kTp = field("tp", "/plan/tp", {1, 2, 4});
const SweptField kPp = field("pp", "/plan/pp", {1, 2});
const SweptField kGpus = field("gpus", "/gpus", {64, 128, 256});

// A row for every point: one second each unless `change` says otherwise.
PlotRows rows_of(const Grid& grid, const std::function<void(PlotRow&, Point)>& change = {}) {
  PlotRows rows;
  for (Point point = 0; point < grid.size(); ++point) {
    PlotRow& row = rows.rows.emplace_back();
    row.values = grid.values_at(point);
    row.has_report = true;
    row.step_time_s = 1;
    row.tokens_per_s_per_gpu = 100;
    row.bubble = 0.2;
    row.ideal_bubble = 0.1;
    row.needed_bytes = 40e9;
    row.capacity_bytes = 80e9;
    row.gpus = 64;
    row.microbatches = 8;
    row.global_batch = 64;
    if (change) change(row, point);
  }
  return rows;
}

PlotKind chosen(std::vector<SweptField> fields, const std::function<void(PlotRow&, Point)>& change = {}) {
  const Grid grid{std::move(fields)};
  return choose_plot(grid, rows_of(grid, change));
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(Curves, WhatWasExecutedStandsBesideWhatWasPredicted) {
  const Grid grid{{kBatch, kSchedule}};
  const PlotRows rows = rows_of(grid, [](PlotRow& row, Point point) {
    row.microbatches = static_cast<double>(1 << (point / 2));
    row.executed_step_time_s = 2;
    row.executed_bubble = 0.25;
  });
  const Chart chart = make_curves(grid, rows, PlotKind::bubble);
  ASSERT_EQ(chart.series.size(), 6U);  // closed form, predicted, executed: of two schedules
  const ChartSeries& executed = chart.series.back();
  EXPECT_THAT(executed.name, HasSubstr("executed"));
  EXPECT_FALSE(executed.joined);
  ASSERT_EQ(executed.points.size(), 3U);
  EXPECT_DOUBLE_EQ(executed.points[0].y, 25);
  EXPECT_DOUBLE_EQ(make_curves(grid, rows, PlotKind::throughput).series.size(), 2);
}

TEST(PlotChoice, FollowsFromWhatVaries) {
  EXPECT_EQ(chosen({kBatch, kSchedule}), PlotKind::bubble);
  EXPECT_EQ(chosen({kBatch}, [](PlotRow& row, Point) { row.ideal_bubble = 0; }), PlotKind::step_time)
      << "without a pipeline there is no bubble";
  EXPECT_EQ(chosen({kTp}), PlotKind::step_time);
  EXPECT_EQ(chosen({kTp, kSchedule}), PlotKind::step_time);
  EXPECT_EQ(chosen({kTp, kPp}), PlotKind::heatmap);
  EXPECT_EQ(chosen({kTp, kPp, kSchedule}), PlotKind::pareto);
  EXPECT_EQ(chosen({kSchedule}), PlotKind::breakdown);
  EXPECT_EQ(chosen({kGpus}), PlotKind::weak_scaling) << "rows_of keeps batch and GPUs in step";
  EXPECT_EQ(chosen({kGpus}, [](PlotRow& row, Point point) { row.gpus = 64 << point; }),
            PlotKind::strong_scaling);
  const SweptField dp = field("dp", "/plan/dp", {1, 2, 4});
  EXPECT_EQ(chosen({dp}), PlotKind::step_time);
  EXPECT_EQ(chosen({dp}, [](PlotRow& row, Point point) { row.gpus = row.global_batch = 64 << point; }),
            PlotKind::weak_scaling);
}

TEST(PlotChoice, QuantitiesWithUnitsAreNumbers) {
  const FieldAxis axis =
      axis_of(field("x", "/cluster_changes/node/nics/bandwidth", {"100Gbps", "25GB/s", "400Gbps"}));
  EXPECT_TRUE(axis.numeric);
  EXPECT_THAT(axis.at, ElementsAre(12.5e9, 25e9, 50e9));
  EXPECT_THAT(axis.texts, ElementsAre("100Gbps", "25GB/s", "400Gbps"));
  EXPECT_FALSE(axis_of(kSchedule).numeric);
}

TEST(Plot, EveryRowIsInThePictureOfEveryKind) {
  const Grid grid{{kBatch, kSchedule}};
  const PlotRows rows = rows_of(grid, [](PlotRow& row, Point point) {
    row.microbatches = 8 << (point / 2);
    row.step_time_s += 0.1 * static_cast<double>(point);
    row.needed_bytes += 1e9 * static_cast<double>(point);
    if (point == 3) row.state = RowState::does_not_fit;
    if (point == 4) row = {row.values, RowState::illegal, "a rule", false};
  });
  for (const PlotKind kind : {PlotKind::bubble, PlotKind::step_time, PlotKind::throughput, PlotKind::memory,
                              PlotKind::heatmap, PlotKind::breakdown, PlotKind::traffic}) {
    const std::string picture = draw_plot(grid, rows, kind);
    EXPECT_EQ(count(picture, "idle 20.0 %, "), 5u) << to_string(kind);
    EXPECT_EQ(count(picture, "(does not fit)"), 1u) << to_string(kind);
    EXPECT_EQ(count(picture, "illegal: a rule"), 1u) << to_string(kind);
    EXPECT_EQ(picture, draw_plot(grid, rows, kind)) << to_string(kind);
  }
  EXPECT_THAT(draw_plot(grid, rows, PlotKind::pareto), HasSubstr("5 rows with a result; 1 illegal"));
}

TEST(Plot, BubbleStandsOverMicrobatchesWithTheClosedFormDashed) {
  const Grid grid{{kBatch}};
  const Chart chart =
      make_curves(grid, rows_of(grid, [](PlotRow& row, Point point) { row.microbatches = 8 << point; }),
                  PlotKind::bubble);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_TRUE(chart.series[0].dashed);
  EXPECT_EQ(chart.series[0].points[2].y, 10);
  EXPECT_EQ(chart.series[1].points[2].x, 32);
  EXPECT_EQ(chart.series[1].points[2].y, 20);
}

TEST(Plot, WhatIsIllegalWithoutAPlaceOnTheAxisIsNamed) {
  const Grid grid{{kBatch}};
  const Chart chart = make_curves(grid,
                                  rows_of(grid,
                                          [](PlotRow& row, Point point) {
                                            if (point == 1)
                                              row = {row.values, RowState::illegal, "a rule", false};
                                          }),
                                  PlotKind::bubble);
  EXPECT_THAT(chart.note, HasSubstr("gbs 128"));
}

TEST(Plot, ScalingIsDrawnOverGpusAgainstNoLoss) {
  const Grid grid{{kGpus}};
  const Chart chart = make_curves(grid,
                                  rows_of(grid,
                                          [](PlotRow& row, Point point) {
                                            row.gpus = 64 << point;
                                            row.tokens_per_s_per_gpu = 100 - 10 * static_cast<double>(point);
                                          }),
                                  PlotKind::strong_scaling);
  ASSERT_EQ(chart.series.size(), 2u);
  EXPECT_EQ(chart.series[0].points.back().y, 100) << "flat";
  EXPECT_EQ(chart.series[1].points.back().x, 256);
  EXPECT_EQ(chart.series[1].points.back().y, 80);
}

TEST(Plot, WeakScalingJoinsPointsOfOneBatchAGpu) {
  const Grid grid{{kGpus, kBatch}};
  const PlotRows rows = rows_of(grid, [](PlotRow& row, Point) {
    row.gpus = row.values[0].get<double>();
    row.global_batch = row.values[1].get<double>();
  });
  const Chart chart = make_curves(grid, rows, PlotKind::weak_scaling);
  std::size_t longest = 0, points = 0;
  for (const ChartSeries& series : chart.series) {
    if (series.dashed) continue;
    longest = std::max(longest, series.points.size());
    points += series.points.size();
  }
  EXPECT_EQ(longest, 3u) << "64 on 64, 128 on 128, 256 on 256";
  EXPECT_EQ(points, 9u);
}

TEST(Plot, RefusesWhatTheFieldsCannotGive) {
  const std::pair<Grid, PlotKind> cases[] = {{{{kSchedule}}, PlotKind::step_time},
                                             {{{kSchedule}}, PlotKind::bubble},
                                             {{{kTp}}, PlotKind::heatmap},
                                             {{{kTp}}, PlotKind::strong_scaling},
                                             {{}, PlotKind::pareto}};
  for (const auto& [grid, kind] : cases)
    EXPECT_THROW(require_fields(grid, kind), InputError) << to_string(kind);
  EXPECT_NO_THROW(require_fields({{kSchedule}}, std::nullopt));
}

RC_GTEST_PROP(PlotFront, HoldsExactlyWhatNoOtherRowBeats, ()) {
  const auto cost = rc::gen::inRange(1, 12);
  const auto costs = *rc::gen::container<std::vector<std::pair<int, int>>>(rc::gen::pair(cost, cost));
  std::vector<PlotRow> rows(costs.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].has_report = true;
    rows[i].step_time_s = costs[i].first;
    rows[i].needed_bytes = costs[i].second;
  }
  const std::vector<std::size_t> front = front_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto covers = [&](std::size_t f) {
      return costs[f].first <= costs[i].first && costs[f].second <= costs[i].second;
    };
    RC_ASSERT(std::ranges::any_of(front, covers));
    const auto beaten_by = [&](const auto& other) {
      return other.first <= costs[i].first && other.second <= costs[i].second && other != costs[i];
    };
    if (std::ranges::any_of(costs, beaten_by)) RC_ASSERT(std::ranges::find(front, i) == front.end());
  }
}

// With different batches, the run with the longest step may train fastest.
TEST(PlotFront, OfDifferentWorkComparesTheTimeOfAToken) {
  std::vector<PlotRow> rows(2);
  for (PlotRow& row : rows) {
    row.has_report = true;
    row.needed_bytes = 1;
  }
  rows[0].step_time_s = 1;
  rows[0].tokens_per_s_per_gpu = 500;
  rows[1].step_time_s = 10;
  rows[1].tokens_per_s_per_gpu = 900;
  EXPECT_THAT(front_of(rows), ElementsAre(1));
  rows[1].tokens_per_s_per_gpu = 50;  // the same tokens in ten times the time
  EXPECT_THAT(front_of(rows), ElementsAre(0));
}

Json report_of(const std::string& model, int tp, double seconds) {
  Json shares = Json::object();
  for (const NamedPart& part : kTimeParts)
    shares[part.key] = part.key == std::string("compute") ? seconds : 0;
  return {{"step_time_s", seconds},
          {"tokens_per_s_per_gpu", 10},
          {"mfu", 0.5},
          {"bubble_fraction", {{"mean", 0.1}}},
          {"bubble_fraction_ideal", 0.05},
          {"memory", {{"peak_bytes", 1e9}, {"needed_bytes", 1.5e9}, {"capacity_bytes", 2e9}}},
          {"time_s", shares},
          {"communication",
           {{{"gpu_link_bytes", 3e9}, {"nic_bytes", 1e9}, {"host_bytes", 0}},
            {{"gpu_link_bytes", 0}, {"nic_bytes", 1e9}, {"host_bytes", 0}}}},
          {"model", {{"name", model}}},
          {"cluster", {{"name", "c"}, {"gpus", 8}}},
          {"plan",
           {{"tp", tp},
            {"pp", 1},
            {"vpp", 1},
            {"dp", 8 / tp},
            {"cp", 1},
            {"ep", 1},
            {"micro_batch", 1},
            {"global_batch", 64},
            {"microbatches", 8},
            {"seq", 128},
            {"schedule", "1f1b"},
            {"zero", 0},
            {"precision", "bf16"},
            {"recompute", "none"}}}};
}

TEST(PlotRows, SayWhatIsHeldFixedAndWhatFollows) {
  const Scratch scratch;
  const Grid grid{{kTp}};
  Store store(scratch.file("a.db"), {}, grid, false);
  store.put(0, {RowState::done, "", report_of("<m>", 1, 2.5)});
  store.put(1, {RowState::done, "", report_of("<m>", 2, 1.5)});
  store.put(2, {RowState::illegal, "heads", nullptr});
  const PlotRows rows = read_rows(store, grid);
  EXPECT_EQ(rows.held,
            "Fixed: <m>, c, 8 GPUs, pp 1, microbatch 1, global batch 64, sequence 128, 1f1b, bf16. "
            "dp follows.");
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(rows.rows[1].step_time_s, 1.5);
  EXPECT_EQ(rows.rows[1].time_s[0], 1.5);
  EXPECT_THAT(rows.rows[1].sent_bytes, ElementsAre(3e9, 2e9, 0));
  EXPECT_THAT(draw_plot(grid, rows, PlotKind::traffic), HasSubstr("5 GB, 2 GB over NICs"));
  EXPECT_FALSE(rows.rows[2].has_report);
  EXPECT_THAT(draw_plot(grid, rows), HasSubstr("&lt;m&gt;"));
}

TEST(PlotRows, OfAVersionWithoutAFigureAreToBeSweptAgain) {
  const Scratch scratch;
  const Grid grid{{kTp}};
  Store store(scratch.file("a.db"), {}, grid, false);
  Json earlier = report_of("m", 1, 2.5);
  earlier["memory"].erase("needed_bytes");
  store.put(0, {RowState::done, "", earlier});
  try {
    read_rows(store, grid);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("needed_bytes"), HasSubstr("sweep again")));
  }
}

}  // namespace
}  // namespace rehearse::plot
