#include <algorithm>
#include <cmath>

#include "draw/html/timeline_json.h"
#include "memory/memory.h"
#include "result/activation_curve.h"
#include "result/drawn_ranks.h"

namespace rehearse::html {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMoments = 480;
constexpr std::size_t kMaxDrawnRanks = 8;

// The maximum in each of kMoments equal parts of the iteration, including the value at the part's begin.
std::vector<std::int64_t> highest(const std::vector<MemoryPoint>& curve, double floor_bytes, double end_s) {
  std::vector<double> most(kMoments, -1);
  double now = 0;
  std::size_t reached = 0;
  const auto hold_until = [&](std::size_t part) {
    for (; reached <= part && reached < kMoments; ++reached) most[reached] = std::max(most[reached], now);
  };
  for (const MemoryPoint& point : curve) {
    const auto part = std::min(kMoments - 1, static_cast<std::size_t>(point.time_s / end_s * kMoments));
    hold_until(part);
    now = std::max(0.0, point.bytes);
    most[part] = std::max(most[part], now);
  }
  hold_until(kMoments - 1);
  std::vector<std::int64_t> bytes;
  for (const double value : most) bytes.push_back(std::llround(floor_bytes + std::max(0.0, value)));
  return bytes;
}

}  // namespace

Json memory_json(const Timeline& timeline, const Schedule& schedule, const Report& report, const Work& work) {
  const double end_s = report.step_time_s > 0 ? report.step_time_s : 1;
  const std::vector<StageBytes> stages = stage_bytes(work);
  Json json = {{"time_s", Json::array()}, {"ranks", Json::array()}};
  for (std::size_t i = 0; i < kMoments; ++i)
    json["time_s"].push_back(end_s * static_cast<double>(i) / (kMoments - 1));
  for (const TimelineRank* rank : drawn_ranks(timeline, report, kMaxDrawnRanks)) {
    const auto place = static_cast<std::size_t>(rank->instance.pipeline_rank);
    const double floor_bytes = state_and_buffer_bytes(report.memory[place]);
    json["ranks"].push_back(
        {{"rank", place},
         {"state_bytes", std::llround(floor_bytes)},
         {"bytes", highest(activation_curve(*rank, schedule.ranks[place], stages), floor_bytes, end_s)}});
  }
  return json;
}

}  // namespace rehearse::html
