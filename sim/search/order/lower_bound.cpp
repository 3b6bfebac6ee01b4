#include "search/order/lower_bound.h"

#include <algorithm>
#include <vector>

namespace rehearse {

namespace {

Ticks whole(const StageCosts& stage) {
  return std::min(stage.backward, stage.input + stage.weight);
}
// Least time until the gradient is sent on.
Ticks gradient(const StageCosts& stage) {
  return std::min(stage.backward, stage.input);
}

class Bound {
 public:
  explicit Bound(const OrderProblem& problem) : problem_(problem) {
    const std::size_t count = problem.stages.size();
    arrival_.resize(count);
    for (std::size_t s = 1; s < count; ++s)
      arrival_[s] = arrival_[s - 1] + at(s - 1).forward + at(s - 1).to_next;
    gradient_at_.resize(count);
    gradient_at_[count - 1] = arrival_[count - 1] + at(count - 1).forward;
    for (std::size_t s = count - 1; s-- > 0;)
      gradient_at_[s] = gradient_at_[s + 1] + gradient(at(s + 1)) + at(s + 1).to_previous;
    way_home_.resize(count);
    for (std::size_t s = 1; s < count; ++s)
      way_home_[s] = at(s).to_previous + (s == 1 ? home() : gradient(at(s - 1)) + way_home_[s - 1]);
    Ticks slowest = 0;
    pace_.resize(count);
    for (std::size_t s = 0; s < count; ++s) {
      pace_[s] = slowest = std::max(slowest, at(s).forward);
    }
  }

  std::vector<Ticks> run() const {
    std::vector<Ticks> bounds;
    for (int rank = 0; rank < problem_.ranks; ++rank) bounds.push_back(of_rank(rank));
    return bounds;
  }

 private:
  const StageCosts& at(std::size_t stage) const { return problem_.stages[stage]; }

  // From the arrival of the last gradient at stage 0 to the end of the step.
  Ticks home() const {
    return whole(at(0)) + at(0).reduction / at(0).buckets +
           problem_.step[static_cast<std::size_t>(problem_.rank_of.front())];
  }

  std::vector<std::size_t> stages_of(int rank) const {
    std::vector<std::size_t> own;
    for (std::size_t s = 0; s < problem_.stages.size(); ++s)
      if (problem_.rank_of[s] == rank) own.push_back(s);
    return own;
  }

  Ticks of_rank(int rank) const;
  Ticks idle_before(const std::vector<std::size_t>& own, double capacity) const;
  Ticks idle_after(const std::vector<std::size_t>& own, double capacity) const;

  const OrderProblem& problem_;
  std::vector<Ticks> arrival_;      // by stage: of the first microbatch
  std::vector<Ticks> gradient_at_;  // and of its gradient
  std::vector<Ticks> way_home_;     // from the end of a gradient at this stage
  std::vector<Ticks> pace_;         // the longest forward up to here: microbatches arrive no faster
};

// Idle time of a rank before its first gradient arrives. Until then it can only run forwards.
Ticks Bound::idle_before(const std::vector<std::size_t>& own, double capacity) const {
  const Ticks until = gradient_at_[own.back()];
  struct Release {
    Ticks time, work;
  };
  std::vector<Release> releases;
  double fewest_bytes = at(own.front()).saved;
  Ticks longest = 0;
  for (const std::size_t s : own) {
    fewest_bytes = std::min(fewest_bytes, at(s).saved);
    longest = std::max(longest, at(s).forward);
    const Ticks pace = s == 0 ? 0 : pace_[s - 1];
    for (int i = 0; i < problem_.microbatches; ++i) {
      const Ticks time = arrival_[s] + pace * i;
      if (time >= until) break;
      releases.push_back({time, at(s).forward});
    }
  }
  std::ranges::sort(releases, {}, &Release::time);
  Ticks now = arrival_[own.front()], busy = 0;
  for (const Release& release : releases) {
    const Ticks begin = std::max(now, release.time);
    if (begin >= until) break;
    now = begin + release.work;
    busy += std::min(now, until) - begin;
  }
  if (fewest_bytes > 0) {
    const double held = std::max(0.0, capacity / fewest_bytes);
    if (held < 1e6) busy = std::min(busy, static_cast<Ticks>(held) * longest);
  }
  return std::max<Ticks>(0, until - arrival_[own.front()] - busy);
}

// Idle time of a rank after its last forward, while that microbatch goes on to the last stage and comes back.
// Until then the rank's work is limited to the activations that its memory holds.
Ticks Bound::idle_after(const std::vector<std::size_t>& own, double capacity) const {
  const std::size_t nearest = own.back();
  const Ticks away = gradient_at_[nearest] - arrival_[nearest] - at(nearest).forward;
  double work_per_byte = 0;
  for (const std::size_t s : own) {
    const StageCosts& stage = at(s);
    if (stage.saved <= 0) return 0;
    work_per_byte = std::max(work_per_byte, static_cast<double>(stage.input + stage.weight) / stage.saved);
    work_per_byte = std::max(work_per_byte, static_cast<double>(stage.backward) / stage.saved);
    if (stage.kept <= 0) return 0;
    work_per_byte = std::max(work_per_byte, static_cast<double>(stage.weight) / stage.kept);
  }
  const double work = work_per_byte * std::max(0.0, capacity);
  return work >= static_cast<double>(away) ? 0 : away - static_cast<Ticks>(work);
}

Ticks Bound::of_rank(int rank) const {
  const auto r = static_cast<std::size_t>(rank);
  const std::vector<std::size_t> own = stages_of(rank);
  if (own.empty()) return 0;
  const double capacity = problem_.capacity[r];
  Ticks work = 0, last_part = kNever;
  double all_bytes = 0, fewest_kept = at(own.front()).kept;
  for (const std::size_t s : own) {
    work += problem_.microbatches * (at(s).forward + whole(at(s)));
    last_part = std::min(last_part, at(s).reduction / at(s).buckets);
    all_bytes += at(s).saved * problem_.microbatches;
    fewest_kept = std::min(fewest_kept, at(s).kept);
  }
  const Ticks before = idle_before(own, capacity), after = idle_after(own, capacity);
  // A rank without memory for all microbatches runs its last forward after its first gradient, so it idles
  // twice.
  const Ticks idle = all_bytes > capacity ? before + after : std::max(before, after);
  const Ticks busy = arrival_[own.front()] + idle + work;
  const Ticks through = busy + last_part + problem_.step[r];
  if (own.front() == 0) return through;
  // Postpones W. Those come first that lengthen the work least for each second that the last gradient is
  // sooner.
  struct Left {
    double cost, gain;
  };
  std::vector<Left> choices;
  double most_gain = 0;
  for (const std::size_t s : own) {
    const auto gain = static_cast<double>(whole(at(s)) - gradient(at(s)));
    const auto cost = static_cast<double>(at(s).input + at(s).weight - whole(at(s)));
    most_gain = std::max(most_gain, gain);
    if (gain > 0) choices.push_back({cost * problem_.microbatches, gain * problem_.microbatches});
  }
  std::ranges::sort(choices, [](const Left& a, const Left& b) { return a.cost * b.gain < b.cost * a.gain; });
  double ends = static_cast<double>(through), drains = static_cast<double>(busy + way_home_[own.front()]);
  for (const Left& left : choices) {
    if (drains <= ends) break;
    const double share = std::min(1.0, (drains - ends) / (left.cost + left.gain));
    ends += left.cost * share;
    drains -= left.gain * share;
  }
  double least = std::max(ends, drains);
  if (fewest_kept > 0)
    least = std::max(least, static_cast<double>(busy + way_home_[own.front()]) -
                                most_gain * std::max(0.0, capacity / fewest_kept));
  return std::max(through, static_cast<Ticks>(least) - 1);
}

}  // namespace

std::vector<Ticks> lower_bounds(const OrderProblem& problem) {
  return Bound(problem).run();
}

Ticks lower_bound(const OrderProblem& problem) {
  return std::ranges::max(lower_bounds(problem));
}

}  // namespace rehearse
