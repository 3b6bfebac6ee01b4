#include "search/order/greedy.h"

#include <algorithm>

namespace rehearse {

Greedy::Greedy(const OrderProblem& problem)
    : problem_(problem),
      bytes_(pass_bytes(problem)),
      ticks_(pass_ticks(problem)),
      ranks_(static_cast<std::size_t>(problem.ranks)),
      forward_end_(cell(problem.stage_count(), 0)),
      gradient_end_(forward_end_),
      forwards_(problem.stages.size()),
      gradients_(forwards_),
      waiting_(forwards_),
      orders_(ranks_.size()) {
  for (int stage = 0; stage < problem.stage_count(); ++stage)
    ranks_[static_cast<std::size_t>(problem.rank_of[static_cast<std::size_t>(stage)])].stages.push_back(
        stage);
  for (Rank& rank : ranks_) {
    rank.later.resize(rank.stages.size());
    double later = 0;
    for (std::size_t i = rank.stages.size(); i-- > 0;) {
      rank.later[i] = later;
      later += problem.stages[static_cast<std::size_t>(rank.stages[i])].saved;
    }
  }
}

void Greedy::wake(Ticks time, int rank) {
  const auto later = [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.rank > b.rank;
  };
  events_.push_back({time, rank});
  std::ranges::push_heap(events_, later);
}

Ticks Greedy::run(const GreedyRules& rules) {
  std::ranges::fill(forward_end_, kNever);
  std::ranges::fill(gradient_end_, kNever);
  std::ranges::fill(forwards_, 0);
  std::ranges::fill(gradients_, 0);
  std::ranges::fill(waiting_, 0);
  for (Rank& rank : ranks_) {
    rank.in_flight = rank.backwards = rank.weights_waiting = 0;
    rank.live = 0;
    rank.free = 0;
  }
  for (RankOrder& order : orders_) order.clear();
  left_ = 2 * forward_end_.size();
  events_.clear();
  for (int rank = 0; rank < problem_.ranks; ++rank) wake(0, rank);
  const auto later = [](const Event& a, const Event& b) {
    return a.time != b.time ? a.time > b.time : a.rank > b.rank;
  };
  while (!events_.empty()) {
    const Event event = events_.front();
    std::ranges::pop_heap(events_, later);
    events_.pop_back();
    if (ranks_[static_cast<std::size_t>(event.rank)].free <= event.time)
      decide(event.time, event.rank, rules);
  }
  if (left_ > 0) return kNever;
  Ticks end = 0;
  for (const Rank& rank : ranks_) {
    if (rank.weights_waiting > 0) return kNever;
    end = std::max(end, rank.free);
  }
  return end;
}

Ticks Greedy::input_of_forward(int stage) const {
  const int microbatch = forwards_[static_cast<std::size_t>(stage)];
  if (microbatch == problem_.microbatches) return kNever;
  if (stage == 0) return 0;
  return forward_end_[cell(stage - 1, microbatch)] +
         problem_.stages[static_cast<std::size_t>(stage) - 1].to_next;
}

Ticks Greedy::input_of_gradient(int stage) const {
  const int microbatch = gradients_[static_cast<std::size_t>(stage)];
  if (microbatch == problem_.microbatches) return kNever;
  if (stage + 1 == problem_.stage_count()) return forward_end_[cell(stage, microbatch)];
  return gradient_end_[cell(stage + 1, microbatch)] +
         problem_.stages[static_cast<std::size_t>(stage) + 1].to_previous;
}

void Greedy::decide(Ticks now, int rank, const GreedyRules& rules) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  const int depth = rules.depth[static_cast<std::size_t>(rank)];
  if (own.in_flight < depth && forward(now, rank, rules.group)) return;
  if (gradient(now, rank, rules)) return;
  if (own.in_flight >= depth && own.in_flight < depth + rules.slack && forward(now, rank, rules.group))
    return;
  weight(now, rank, rules.patience);
}

// Runs the first forward that is ready, by groups of microbatches, and within a group by chunks. Memory must
// remain for the chunks that the microbatch still has to reach. Otherwise ranks may wait for each other's
// memory.
bool Greedy::forward(Ticks now, int rank, int group) {
  const Rank& own = ranks_[static_cast<std::size_t>(rank)];
  int best = -1, best_group = 0;
  for (std::size_t i = 0; i < own.stages.size(); ++i) {
    const int stage = own.stages[i];
    if (input_of_forward(stage) > now) continue;
    const int turn = forwards_[static_cast<std::size_t>(stage)] / group;
    if (best >= 0 && turn >= best_group) continue;
    const PassBytes& bytes = bytes_[pass_of(stage, kForward)];
    const double need = std::max(bytes.peak, bytes.change + own.later[i]);
    if (own.live + need > problem_.capacity[static_cast<std::size_t>(rank)]) continue;
    best = stage;
    best_group = turn;
  }
  if (best < 0) return false;
  ++ranks_[static_cast<std::size_t>(rank)].in_flight;
  take(now, rank, pass_of(best, kForward), forwards_[static_cast<std::size_t>(best)]++);
  return true;
}

bool Greedy::gradient(Ticks now, int rank, const GreedyRules& rules) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  int best = -1, best_group = 0;
  for (std::size_t i = own.stages.size(); i-- > 0;) {
    const int stage = own.stages[i];
    if (input_of_gradient(stage) > now) continue;
    const int turn = gradients_[static_cast<std::size_t>(stage)] / rules.group_back;
    if (best >= 0 && turn >= best_group) continue;
    best = stage;
    best_group = turn;
  }
  if (best < 0) return false;
  const auto r = static_cast<std::size_t>(rank);
  const auto has_room = [&](Pass kind) {
    return own.live + bytes_[pass_of(best, kind)].peak <= problem_.capacity[r];
  };
  const int all = static_cast<int>(own.stages.size()) * problem_.microbatches;
  const bool asked = (own.backwards >= rules.split_from[r] && own.backwards < rules.split_to[r]) ||
                     own.backwards >= all - rules.split_last[r];
  const bool split = asked && has_room(kInput);
  if (!split && !has_room(kBackward)) return weight(now, rank, 0);
  ++own.backwards;
  --own.in_flight;
  if (split) {
    ++waiting_[static_cast<std::size_t>(best)];
    ++own.weights_waiting;
  }
  take(now, rank, pass_of(best, split ? kInput : kBackward), gradients_[static_cast<std::size_t>(best)]++);
  return true;
}

// Runs a W of the stage with most of them waiting, unless a pass arrives within the timeout.
bool Greedy::weight(Ticks now, int rank, int patience) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  if (own.weights_waiting == 0) return false;
  int best = own.stages.front();
  Ticks next = kNever;
  for (const int stage : own.stages) {
    if (waiting_[static_cast<std::size_t>(stage)] > waiting_[static_cast<std::size_t>(best)]) best = stage;
    if (patience == 0) continue;
    for (const Ticks input : {input_of_forward(stage), input_of_gradient(stage)})
      if (input > now) next = std::min(next, input);
  }
  const Pass pass = pass_of(best, kWeight);
  if (patience > 0 && next - now < ticks_[pass] * patience / 8) return false;  // woken when it arrives
  if (own.live + bytes_[pass].peak > problem_.capacity[static_cast<std::size_t>(rank)]) return false;
  --waiting_[static_cast<std::size_t>(best)];
  --own.weights_waiting;
  take(now, rank, pass, 0);
  return true;
}

void Greedy::take(Ticks now, int rank, Pass pass, int microbatch) {
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  orders_[static_cast<std::size_t>(rank)].push_back(pass);
  own.live += bytes_[pass].change;
  const Ticks end = own.free = now + ticks_[pass];
  wake(end, rank);
  if (kind_of_pass(pass) == kWeight) return;
  --left_;
  const int stage = stage_of_pass(pass);
  const StageCosts& costs = problem_.stages[static_cast<std::size_t>(stage)];
  if (kind_of_pass(pass) == kForward) {
    forward_end_[cell(stage, microbatch)] = end;
    if (stage + 1 < problem_.stage_count())
      wake(end + costs.to_next, problem_.rank_of[static_cast<std::size_t>(stage) + 1]);
  } else {
    gradient_end_[cell(stage, microbatch)] = end;
    if (stage > 0) wake(end + costs.to_previous, problem_.rank_of[static_cast<std::size_t>(stage) - 1]);
  }
}

}  // namespace rehearse
