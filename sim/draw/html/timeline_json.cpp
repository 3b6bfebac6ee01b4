#include "draw/html/timeline_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "result/idle.h"

namespace rehearse::html {

namespace {

using Json = nlohmann::ordered_json;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kMaxSpans = 400'000;
constexpr std::size_t kMaxReplicas = 32;  // rows; with more replicas, one row for each pipeline rank
constexpr double kTicks = 1e8;            // approximate number in an iteration

// A power of ten, so that equal times stay equal.
double tick_of(double step_time_s) {
  if (!(step_time_s > 0)) return 1e-9;
  return std::pow(10, std::max(-9.0, std::ceil(std::log10(step_time_s / kTicks))));
}

bool all_zero(const Numbers& numbers) {
  return std::ranges::all_of(numbers, [](std::int64_t number) { return number == 0; });
}

class Columns {
 public:
  explicit Columns(double tick_s) : tick_s_(tick_s) {}

  void add_time(double begin_s, double end_s) {
    const std::int64_t begin = std::llround(begin_s / tick_s_);
    const std::int64_t length = std::max<std::int64_t>(0, std::llround(end_s / tick_s_) - begin);
    begin_.push_back(begin - end_);
    length_.push_back(length);
    end_ = begin + length;
  }

  void write(Json& json) const {
    json["begin"] = begin_;
    json["length"] = length_;
  }

 private:
  double tick_s_;
  std::int64_t end_ = 0;
  Numbers begin_, length_;
};

struct Lane {
  explicit Lane(double tick_s) : times(tick_s) {}
  Columns times;
  Numbers kind, stage, microbatch, part;
};

Json lane_json(Stream stream, const Lane& lane) {
  Json json = {{"stream", static_cast<int>(stream)}};
  lane.times.write(json);
  for (const auto& [name, column] : {std::pair<const char*, const Numbers&>{"kind", lane.kind},
                                     {"stage", lane.stage},
                                     {"microbatch", lane.microbatch},
                                     {"part", lane.part}})
    if (!all_zero(column)) json[name] = column;
  return json;
}

Json lanes_json(const TimelineRank& rank, const RankOps& ops, double tick_s) {
  std::map<Stream, Lane> lanes;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.kind == OpKind::reshard) continue;  // takes no time
    Lane& lane = lanes.try_emplace(op.stream, tick_s).first->second;
    lane.times.add_time(rank.spans[i].begin, rank.spans[i].end);
    lane.kind.push_back(static_cast<int>(op.kind));
    lane.stage.push_back(op.stage);
    lane.microbatch.push_back(has_microbatch(op.kind) ? op.microbatch : -1);
    lane.part.push_back(op.parts > 1 ? op.part + 1 : 0);
  }
  Json json = Json::array();
  for (const auto& [stream, lane] : lanes) json.push_back(lane_json(stream, lane));
  return json;
}

Json idle_json(const TimelineRank& rank, const RankOps& ops, const Report& report, double tick_s) {
  Columns times(tick_s);
  Numbers moving;
  std::vector<std::string> names;
  for (const Gap& gap : compute_gaps(rank, ops, report.step_time_s, report.plan.one_queue))
    for (const GapPart& part : parts_of(gap, rank)) {
      if (part.end - part.begin < tick_s) continue;
      times.add_time(part.begin, part.end);
      moving.push_back(part.moves ? 1 : 0);
      names.push_back(part.op < 0 ? "" : to_string(ops[static_cast<std::size_t>(part.op)]));
    }
  Json json = Json::object();
  times.write(json);
  json["moving"] = moving;
  json["op"] = names;
  return json;
}

// All ranks of the timeline where they are few: replicas differ when a part is slow.
std::vector<const TimelineRank*> rows_of(const Timeline& timeline) {
  std::map<int, const TimelineRank*> first;
  for (const TimelineRank& rank : timeline.ranks) first.emplace(rank.instance.pipeline_rank, &rank);
  std::vector<const TimelineRank*> rows;
  if (timeline.ranks.size() <= kMaxReplicas) {
    for (const TimelineRank& rank : timeline.ranks) rows.push_back(&rank);
  } else {
    for (const auto& [pipeline_rank, rank] : first) rows.push_back(rank);
  }
  return rows;
}

std::vector<const TimelineRank*> shown_rows(const Timeline& timeline) {
  const std::vector<const TimelineRank*> all = rows_of(timeline);
  std::int64_t spans = 0;
  for (const TimelineRank* rank : all) spans += static_cast<std::int64_t>(rank->spans.size());
  if (spans <= kMaxSpans) return all;
  const auto rows = std::max<std::size_t>(2, all.size() * kMaxSpans / static_cast<std::size_t>(spans));
  std::vector<const TimelineRank*> shown;
  for (std::size_t i = 0; i < rows && rows <= all.size(); ++i)
    shown.push_back(all[i * (all.size() - 1) / (rows - 1)]);
  return shown.empty() ? all : shown;
}

template <typename Enum, int kCount>
Json names_of() {
  Json names = Json::array();
  for (int i = 0; i < kCount; ++i) names.push_back(to_string(static_cast<Enum>(i)));
  return names;
}

}  // namespace

Json timeline_json(const Timeline& timeline, const Schedule& schedule, const Report& report) {
  require_fits(timeline, schedule);
  const double tick_s = tick_of(report.step_time_s);
  Json json = {{"tick_s", tick_s},
               {"end", std::llround(report.step_time_s / tick_s)},
               {"pp", schedule.pp},
               {"stages", schedule.stages},
               {"microbatches", schedule.microbatches},
               {"kinds", names_of<OpKind, kOpKinds>()},
               {"streams", names_of<Stream, kStreams>()},
               {"rows_of", rows_of(timeline).size()},
               {"rows", Json::array()}};
  for (const TimelineRank* rank : shown_rows(timeline)) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank->instance.pipeline_rank)];
    json["rows"].push_back({{"rank", rank->instance.rank},
                            {"pipeline_rank", rank->instance.pipeline_rank},
                            {"lanes", lanes_json(*rank, ops, tick_s)},
                            {"idle", idle_json(*rank, ops, report, tick_s)}});
  }
  return json;
}

}  // namespace rehearse::html
