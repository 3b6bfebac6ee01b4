#include "search/order/clock.h"

#include <algorithm>

namespace rehearse {

OrderClock::OrderClock(const OrderProblem& problem)
    : problem_(&problem),
      microbatches_(static_cast<std::size_t>(problem.microbatches)),
      ticks_(pass_ticks(problem)) {
  const std::size_t stages = problem.stages.size(), ranks = static_cast<std::size_t>(problem.ranks);
  stages_of_.resize(ranks);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    stages_of_[static_cast<std::size_t>(problem.rank_of[stage])].push_back(static_cast<int>(stage));
    reduces_ |= problem.stages[stage].reduction > 0;
  }
  std::size_t most = 0;
  for (const auto& own : stages_of_) most = std::max(most, own.size());
  stride_ = 3 * most * microbatches_ + 1;
  begin_.resize(stride_ * ranks);
  way_.resize(stride_ * ranks);
  microbatch_.resize(stride_ * ranks);
  done_.reserve(stride_ * ranks);
  forward_end_.resize(stages * microbatches_);
  gradient_end_ = forward_way_ = gradient_way_ = forward_end_;
  forwards_.resize(stages);
  gradients_ = forwards_;
  last_end_.resize(stages);
  last_ticks_ = last_end_;
  cursor_.resize(ranks);
  waits_for_.resize(ranks);
  free_.resize(ranks);
  finish_ = tail_ = free_;
}

Ticks OrderClock::arrival(Pass pass, int microbatch) const {
  const int stage = stage_of_pass(pass);
  if (kind_of_pass(pass) == kForward) {
    if (stage == 0) return 0;
    return forward_end_[cell(stage - 1, microbatch)] +
           problem_->stages[static_cast<std::size_t>(stage) - 1].to_next;
  }
  if (!takes_gradient(pass) || stage + 1 == problem_->stage_count()) return 0;
  return gradient_end_[cell(stage + 1, microbatch)] +
         problem_->stages[static_cast<std::size_t>(stage) + 1].to_previous;
}

Ticks OrderClock::way_on(Pass pass, int microbatch) const {
  const int stage = stage_of_pass(pass);
  const StageCosts& costs = problem_->stages[static_cast<std::size_t>(stage)];
  if (kind_of_pass(pass) == kForward)
    return stage + 1 == problem_->stage_count() ? 0
                                                : forward_way_[cell(stage + 1, microbatch)] + costs.to_next;
  if (!takes_gradient(pass) || stage == 0) return 0;
  return gradient_way_[cell(stage - 1, microbatch)] + costs.to_previous;
}

Ticks OrderClock::run(const RankOrders& orders) {
  done_.clear();
  std::ranges::fill(forward_end_, -1);
  std::ranges::fill(gradient_end_, -1);
  std::ranges::fill(forwards_, 0);
  std::ranges::fill(gradients_, 0);
  std::ranges::fill(cursor_, 0);
  std::ranges::fill(waits_for_, -1);
  std::ranges::fill(free_, 0);
  ready_.clear();
  for (int rank = problem_->ranks; rank-- > 0;) ready_.push_back(rank);
  while (!ready_.empty()) {
    const int rank = ready_.back();
    ready_.pop_back();
    advance(orders, rank);
  }
  end_ = 0;
  for (int rank = 0; rank < problem_->ranks; ++rank) {
    if (cursor_[static_cast<std::size_t>(rank)] < orders[static_cast<std::size_t>(rank)].size())
      return end_ = kNever;
    finish_rank(rank);
    end_ = std::max(end_, finish_[static_cast<std::size_t>(rank)]);
  }
  return end_;
}

// Advances a rank as far as the inputs of its passes are complete.
void OrderClock::advance(const RankOrders& orders, int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const RankOrder& order = orders[r];
  const std::size_t base = first(rank), count = order.size();
  const int last_stage = problem_->stage_count() - 1;
  const auto cells = static_cast<std::int64_t>(forward_end_.size());
  const StageCosts* const costs = problem_->stages.data();
  const int* const rank_of = problem_->rank_of.data();
  std::size_t at = cursor_[r];
  Ticks now = free_[r];
  waits_for_[r] = -1;
  for (; at < count; ++at) {
    const Pass pass = order[at];
    const int stage = stage_of_pass(pass);
    const auto s = static_cast<std::size_t>(stage);
    const Pass kind = kind_of_pass(pass);
    Ticks begin = now;
    std::size_t own = 0;
    if (kind == kForward) {
      own = cell(stage, forwards_[s]);
      if (stage > 0) {
        const Ticks input = forward_end_[own - microbatches_];
        if (input < 0) {
          waits_for_[r] = static_cast<std::int64_t>(own - microbatches_);
          break;
        }
        begin = std::max(begin, input + costs[s - 1].to_next);
      }
    } else if (kind != kWeight) {
      own = cell(stage, gradients_[s]);
      if (stage < last_stage) {
        const Ticks input = gradient_end_[own + microbatches_];
        if (input < 0) {
          waits_for_[r] = static_cast<std::int64_t>(own + microbatches_) + cells;
          break;
        }
        begin = std::max(begin, input + costs[s + 1].to_previous);
      } else if (forward_end_[own] < 0) {
        break;
      }
    }
    const Ticks ticks = ticks_[pass];
    now = begin + ticks;
    const std::size_t index = base + at;
    begin_[index] = begin;
    done_.push_back(static_cast<std::uint32_t>(index));
    if (kind == kForward) {
      microbatch_[index] = forwards_[s]++;
      forward_end_[own] = now;
      if (stage < last_stage) {
        const int reader = rank_of[s + 1];
        if (waits_for_[static_cast<std::size_t>(reader)] == static_cast<std::int64_t>(own))
          ready_.push_back(reader);
      }
      continue;
    }
    if (kind != kWeight) {
      microbatch_[index] = gradients_[s]++;
      gradient_end_[own] = now;
      if (stage > 0) {
        const int reader = rank_of[s - 1];
        if (waits_for_[static_cast<std::size_t>(reader)] == static_cast<std::int64_t>(own) + cells)
          ready_.push_back(reader);
      }
    }
    if (kind != kInput) {
      last_end_[s] = now;
      last_ticks_[s] = ticks;
    }
  }
  cursor_[r] = at;
  free_[r] = now;
}

// Reductions run beside compute, one after the other. The parts of each follow the parts of its backward.
void OrderClock::finish_rank(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  Ticks reduced = 0;
  if (reduces_) {
    std::vector<int>& own = stages_of_[r];
    std::ranges::sort(own, {}, [&](int stage) { return last_end_[static_cast<std::size_t>(stage)]; });
    for (const int stage : own) {
      const auto s = static_cast<std::size_t>(stage);
      const StageCosts& costs = problem_->stages[s];
      const Ticks first_part = last_end_[s] - last_ticks_[s] + last_ticks_[s] / costs.buckets;
      reduced = std::max(std::max(reduced, first_part) + costs.reduction,
                         last_end_[s] + costs.reduction / costs.buckets);
    }
  }
  finish_[r] = std::max(free_[r], reduced) + problem_->step[r];
  tail_[r] = finish_[r] - free_[r];
}

void OrderClock::run_back(const RankOrders& orders) {
  critical_.clear();
  turns_.clear();
  std::vector<Ticks>& next = last_end_;  // by rank, for this pass alone
  next.assign(std::max(problem_->stages.size(), static_cast<std::size_t>(problem_->ranks)), 0);
  std::ranges::copy(tail_, next.begin());
  const StageCosts* const costs = problem_->stages.data();
  const int last_stage = problem_->stage_count() - 1;
  for (auto index = done_.rbegin(); index != done_.rend(); ++index) {
    const std::size_t r = *index / stride_, at = *index - r * stride_;
    const Pass pass = orders[r][at];
    const int stage = stage_of_pass(pass);
    const auto s = static_cast<std::size_t>(stage);
    const Ticks own_way = next[r];
    Ticks way = own_way;
    if (kind_of_pass(pass) == kForward) {
      const std::size_t own = cell(stage, microbatch_[*index]);
      if (stage < last_stage) way = std::max(way, forward_way_[own + microbatches_] + costs[s].to_next);
      way += ticks_[pass];
      forward_way_[own] = way;
    } else if (kind_of_pass(pass) == kWeight) {
      way += ticks_[pass];
    } else {
      const std::size_t own = cell(stage, microbatch_[*index]);
      if (stage > 0) way = std::max(way, gradient_way_[own - microbatches_] + costs[s].to_previous);
      way += ticks_[pass];
      gradient_way_[own] = way;
    }
    way_[*index] = way;
    next[r] = way;
    if (begin_[*index] + way < end_) continue;
    const Place place{static_cast<std::int32_t>(r), static_cast<std::int32_t>(at)};
    critical_.push_back(place);
    const bool goes = way > own_way + ticks_[pass];
    const Ticks free = at > 0 ? begin_[*index - 1] + ticks_[orders[r][at - 1]] : 0;
    const bool comes = begin_[*index] > free;
    if (goes || comes) turns_.push_back(place);
  }
}

}  // namespace rehearse
