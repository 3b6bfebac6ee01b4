#include "run/steady.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

namespace rehearse {

namespace {

constexpr double kSameTime = 1e-9;  // relative to a round: rounding of sums

// Ops of a list that differ only in their microbatch, in their order.
struct Track {
  std::vector<std::int32_t> ops;
  std::int64_t each = 1;  // ops for each microbatch
};

struct Tracks {
  std::vector<Track> tracks;
  std::vector<std::int32_t> of_op;  // by op; -1: of the step, not of a microbatch
};

Tracks tracks_of(const RankOps& list, std::int64_t microbatches) {
  std::map<std::tuple<OpKind, int, int>, std::vector<std::int32_t>> alike;
  for (std::size_t i = 0; i < list.size(); ++i)
    alike[{list[i].kind, list[i].stage, list[i].part}].push_back(static_cast<std::int32_t>(i));
  Tracks found;
  found.of_op.assign(list.size(), -1);
  for (auto& [what, ops] : alike) {
    const auto count = static_cast<std::int64_t>(ops.size());
    if (2 * count < microbatches) continue;
    for (const std::int32_t op : ops)
      found.of_op[static_cast<std::size_t>(op)] = static_cast<std::int32_t>(found.tracks.size());
    found.tracks.push_back(
        {std::move(ops), std::max<std::int64_t>(1, (count + microbatches / 2) / microbatches)});
  }
  return found;
}

class Rounds {
 public:
  Rounds(const Schedule& schedule, const Tasks& tasks, const Timeline& timeline)
      : tasks_(tasks), timeline_(timeline) {
    for (const RankOps& list : schedule.ranks) lists_.push_back(tracks_of(list, schedule.microbatches));
  }

  std::optional<SteadyRound> after(std::int64_t round) {
    seconds_.clear();
    for (const TimelineRank& rank : timeline_.ranks) {
      std::vector<double>& of_rank = seconds_.emplace_back();
      for (const Track& track : list_of(rank).tracks) {
        const std::optional<double> found = round_of(track, rank, round);
        if (!found) return std::nullopt;
        of_rank.push_back(*found);
      }
    }
    const bool is_uniform = are_equal();
    if (!is_uniform && !are_ordered()) return std::nullopt;
    return SteadyRound{round, is_uniform};
  }

 private:
  const Tracks& list_of(const TimelineRank& rank) const {
    return lists_[static_cast<std::size_t>(rank.instance.pipeline_rank)];
  }

  // Seconds from an op to its twin one round later, the same for two rounds in the middle of the step.
  static std::optional<double> round_of(const Track& track, const TimelineRank& rank, std::int64_t round) {
    const auto count = static_cast<std::int64_t>(track.ops.size()), step = round * track.each;
    const std::int64_t end = count / 2, begin = end - 2 * step;
    if (begin < 0 || end + step > count) return std::nullopt;
    const auto span = [&](std::int64_t at) -> const Span& {
      return rank.spans[static_cast<std::size_t>(track.ops[static_cast<std::size_t>(at)])];
    };
    const double seconds = span(begin + step).begin - span(begin).begin;
    for (std::int64_t at = begin; at < end; ++at) {
      const Span &now = span(at), &later = span(at + step);
      if (std::abs(later.begin - now.begin - seconds) > kSameTime * seconds ||
          std::abs(later.end - now.end - seconds) > kSameTime * seconds)
        return std::nullopt;
    }
    return seconds;
  }

  bool are_equal() const {
    double least = INFINITY, most = 0;
    for (const std::vector<double>& of_rank : seconds_)
      for (const double seconds : of_rank) {
        least = std::min(least, seconds);
        most = std::max(most, seconds);
      }
    return most - least <= 2 * kSameTime * most;
  }

  double seconds_of(TaskId task) const {
    const OpRef leader = tasks_.leader[task];
    const auto instance = static_cast<std::size_t>(leader.instance);
    const std::int32_t track = list_of(timeline_.ranks[instance]).of_op[static_cast<std::size_t>(leader.op)];
    return track < 0 ? -1 : seconds_[instance][static_cast<std::size_t>(track)];
  }

  // A task whose round is shorter than that of a task before it catches up with that one.
  bool are_ordered() const {
    for (TaskId task = 0; task < tasks_.size(); ++task) {
      const double before = seconds_of(task);
      if (before < 0) continue;
      for (const TaskId next : tasks_.after(task)) {
        const double after = seconds_of(next);
        if (after >= 0 && after < before * (1 - 2 * kSameTime)) return false;
      }
    }
    return true;
  }

  const Tasks& tasks_;
  const Timeline& timeline_;
  std::vector<Tracks> lists_;                 // by pipeline rank
  std::vector<std::vector<double>> seconds_;  // by rank of the timeline and track: of a round
};

}  // namespace

std::optional<SteadyRound> steady_round(const Schedule& schedule, const Tasks& tasks,
                                        const Timeline& timeline, std::int64_t unit) {
  Rounds rounds(schedule, tasks, timeline);
  for (std::int64_t round = unit; 8 * round <= schedule.microbatches; round += unit)
    if (const auto found = rounds.after(round)) return found;
  return std::nullopt;
}

std::optional<SteadyRound> steady_after(const Schedule& schedule, const Tasks& tasks,
                                        const Timeline& timeline, std::int64_t round) {
  return Rounds(schedule, tasks, timeline).after(round);
}

}  // namespace rehearse
