#include "result/critical_path.h"

#include <algorithm>
#include <array>
#include <optional>

namespace rehearse {

namespace {

// Share of the iteration: ends this close count as equal. Engines round differently, and the choice among
// equal predecessors must not depend on rounding.
constexpr double kSameMoment = 1e-8;

struct PathNode {
  std::uint32_t rank = 0;
  std::int32_t op = 0;
};

class PathWalk {
 public:
  PathWalk(const Timeline& timeline, const Schedule& schedule, const Tasks& tasks, bool one_queue)
      : timeline_(timeline),
        schedule_(schedule),
        tasks_(tasks),
        one_queue_(one_queue),
        same_moment_s_(kSameMoment * timeline.end()),
        ahead_(schedule.ranks.size()) {
    find_members();
  }

  std::vector<PathSegment> run(const PathWindow& window) {
    std::optional<PathNode> at = last_of(window.rank);
    double time = end_of(window.rank);  // of the last end, whichever op with that end is chosen
    while (at && time > window.begin) {
      const double begin = std::max(window.begin, std::min(span(*at).begin, time));
      add(at->rank, at->op, begin, time);
      time = begin;
      const std::optional<PathNode> before = before_of(*at);
      const double free_from = before ? std::max(span(*before).end, window.begin) : window.begin;
      if (free_from < time - same_moment_s_) {
        add(at->rank, -1, free_from, time);
        time = free_from;
      }
      at = before;
    }
    if (!path_.empty()) path_.back().begin = window.begin;
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  int list_of(std::size_t rank) const { return timeline_.ranks[rank].instance.pipeline_rank; }
  const RankOps& ops(std::size_t rank) const {
    return schedule_.ranks[static_cast<std::size_t>(list_of(rank))];
  }
  const Op& at(const PathNode& node) const { return ops(node.rank)[static_cast<std::size_t>(node.op)]; }
  const Span& span(const PathNode& node) const {
    return timeline_.ranks[node.rank].spans[static_cast<std::size_t>(node.op)];
  }

  void add(std::size_t rank, std::int32_t op, double begin, double end) {
    if (begin < end) path_.push_back({rank, op, begin, end});
  }

  // For each task, the ops that begin and end together.
  void find_members() {
    first_member_.assign(tasks_.size() + 1, 0);
    for (const TaskId task : tasks_.task_of) ++first_member_[task + 1];
    for (std::size_t task = 0; task < tasks_.size(); ++task) first_member_[task + 1] += first_member_[task];
    members_.resize(tasks_.task_of.size());
    std::vector<std::uint32_t> next(first_member_.begin(), first_member_.end() - 1);
    for (std::uint32_t rank = 0; rank < tasks_.instances.size(); ++rank) {
      const std::uint32_t first = tasks_.first_op[rank];
      for (std::uint32_t i = first; i < tasks_.first_op[rank + 1]; ++i)
        members_[next[tasks_.task_of[i]]++] = {rank, static_cast<std::int32_t>(i - first)};
    }
  }

  // For each op of a list, the previous op in its stream; -1: none.
  const std::vector<std::int32_t>& ahead_in(std::size_t rank) {
    std::vector<std::int32_t>& ahead = ahead_[static_cast<std::size_t>(list_of(rank))];
    const RankOps& list = ops(rank);
    if (!ahead.empty() || list.size() == 0) return ahead;
    std::array<std::int32_t, kStreams> last;
    last.fill(-1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      std::int32_t& slot = last[one_queue_ ? 0 : static_cast<std::size_t>(list[i].stream)];
      ahead.push_back(slot);
      slot = static_cast<std::int32_t>(i);
    }
    return ahead;
  }

  // Keeps the node that ends later. Of nodes that end together it keeps a compute op, then the one found
  // first.
  void consider(const PathNode& node, std::optional<PathNode>& found) const {
    const auto is_compute_stream = [this](const PathNode& each) {
      return at(each).stream == Stream::compute;
    };
    if (found) {
      const double later_s = span(node).end - span(*found).end;
      if (later_s < -same_moment_s_) return;
      if (later_s <= same_moment_s_ && (is_compute_stream(*found) || !is_compute_stream(node))) return;
    }
    found = node;
  }

  double end_of(int rank) const {
    if (rank < 0) return timeline_.end();
    double last = 0;
    for (const Span& each : timeline_.ranks[static_cast<std::size_t>(rank)].spans)
      last = std::max(last, each.end);
    return last;
  }

  std::optional<PathNode> last_of(int rank) const {
    std::optional<PathNode> last;
    for (std::uint32_t r = 0; r < timeline_.ranks.size(); ++r) {
      if (rank >= 0 && static_cast<std::uint32_t>(rank) != r) continue;
      for (std::size_t i = 0; i < timeline_.ranks[r].spans.size(); ++i)
        consider({r, static_cast<std::int32_t>(i)}, last);
    }
    return last;
  }

  void consider_before(const PathNode& node, std::optional<PathNode>& found) {
    const std::int32_t ahead = ahead_in(node.rank)[static_cast<std::size_t>(node.op)];
    if (ahead >= 0) consider({node.rank, ahead}, found);
    for (const std::int32_t wait : ops(node.rank).waits(at(node))) consider({node.rank, wait}, found);
  }

  std::optional<PathNode> before_of(const PathNode& node) {
    std::optional<PathNode> before;
    consider_before(node, before);
    const TaskId task = tasks_.task(static_cast<int>(node.rank), static_cast<std::size_t>(node.op));
    for (std::uint32_t i = first_member_[task]; i < first_member_[task + 1]; ++i) {
      const PathNode& member = members_[i];
      const bool is_cut = static_cast<std::size_t>(member.op) >= timeline_.ranks[member.rank].spans.size();
      if (member.rank != node.rank && !is_cut) consider_before(member, before);
    }
    return before;
  }

  const Timeline& timeline_;
  const Schedule& schedule_;
  const Tasks& tasks_;
  bool one_queue_;
  double same_moment_s_;
  std::vector<std::vector<std::int32_t>> ahead_;  // by pipeline rank, computed on demand
  std::vector<std::uint32_t> first_member_;       // by task, one more entry than tasks
  std::vector<PathNode> members_;
  std::vector<PathSegment> path_;  // the last segment first
};

}  // namespace

std::vector<PathSegment> critical_path(const Timeline& timeline, const Schedule& schedule, const Tasks& tasks,
                                       bool one_queue, const PathWindow& window) {
  if (timeline.ranks.empty()) return {};
  return PathWalk(timeline, schedule, tasks, one_queue).run(window);
}

}  // namespace rehearse
