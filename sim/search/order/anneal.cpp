#include "search/order/anneal.h"

#include <algorithm>
#include <utility>

namespace rehearse {

Annealer::Annealer(const OrderProblem& problem, RankOrders start)
    : problem_(problem),
      bytes_(pass_bytes(problem)),
      orders_(std::move(start)),
      best_(orders_),
      clock_(problem),
      other_(problem),
      live_(orders_.size()),
      waiting_(orders_.size()),
      count_(problem.stages.size()) {
  best_end_ = end_ = clock_.run(orders_);
  if (end_ != kNever) clock_.run_back(orders_);
  for (int rank = 0; rank < problem.ranks; ++rank) note(rank);
  for (const RankOrder& order : orders_) passes_ += static_cast<std::int64_t>(order.size());
}

void Annealer::restart_from_best() {
  orders_ = best_;
  end_ = clock_.run(orders_);
  clock_.run_back(orders_);
  for (int rank = 0; rank < problem_.ranks; ++rank) note(rank);
}

// Updates the data by position that moves on a rank need.
void Annealer::note(int rank) {
  const auto r = static_cast<std::size_t>(rank);
  const RankOrder& order = orders_[r];
  live_[r].resize(order.size() + 1);
  waiting_[r].resize(order.size() + 1);
  double live = 0;
  for (const Pass pass : order) count_[static_cast<std::size_t>(stage_of_pass(pass))] = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const Pass pass = order[at];
    int& count = count_[static_cast<std::size_t>(stage_of_pass(pass))];
    live_[r][at] = live;
    waiting_[r][at] = count;
    live += bytes_[pass].change;
    if (kind_of_pass(pass) == kInput) ++count;
    if (kind_of_pass(pass) == kWeight) --count;
  }
  live_[r][order.size()] = live;
}

Annealer::Placed Annealer::placed(int rank, std::size_t at) const {
  return {orders_[static_cast<std::size_t>(rank)][at], clock_.microbatch(rank, at)};
}

// Whether pass `second`, behind `first`, may go before it. `crossed` counts passes of the other kind that a
// single I has passed on its way back, or a single W on its way forward.
bool Annealer::may_swap(int rank, std::size_t first, std::size_t second, int& crossed) const {
  const RankOrder& order = orders_[static_cast<std::size_t>(rank)];
  const Pass a = order[first], b = order[second];
  if (stage_of_pass(a) != stage_of_pass(b)) return true;
  if (a == b || (takes_gradient(a) && takes_gradient(b))) return false;
  if (kind_of_pass(a) != kInput || kind_of_pass(b) != kWeight) return true;
  ++crossed;
  return waiting_[static_cast<std::size_t>(rank)][second] > crossed;
}

// Two neighbouring runs of passes change places. More often than not, one of them is a single pass.
bool Annealer::rotate(OrderRandom& random, int rank, std::size_t at) {
  const std::size_t size = orders_[static_cast<std::size_t>(rank)].size();
  const bool before = random.one_in(2);
  const auto far = static_cast<std::size_t>(random.one_in(4) ? 1 + random.below(48) : random.few(16));
  const auto wide = static_cast<std::size_t>(random.one_in(3) ? random.few(6) : 1);
  const bool mirrored = random.one_in(2);
  const std::size_t left = mirrored ? far : wide, right = mirrored ? wide : far;
  const std::size_t middle = before ? at : at + 1;
  if (middle < left || middle + right > size) return false;
  const std::size_t from = middle - left, to = middle + right;
  for (std::size_t i = from; i < middle; ++i) {
    int crossed = 0;
    for (std::size_t j = middle; j < to; ++j) {
      if (left > 1 && right > 1) crossed = kMaxOrderStages;  // only single passes are counted
      if (!may_swap(rank, i, j, crossed)) return false;
    }
  }
  if (left > 1 && right == 1) {  // a W that comes forward past several I
    int crossed = 0;
    for (std::size_t i = middle; i-- > from;)
      if (!may_swap(rank, i, middle, crossed)) return false;
  }
  change_ = {rank, from, to};
  segment_.clear();
  for (std::size_t j = middle; j < to; ++j) segment_.push_back(placed(rank, j));
  for (std::size_t i = from; i < middle; ++i) segment_.push_back(placed(rank, i));
  return true;
}

bool Annealer::split(OrderRandom& random, int rank, std::size_t at) {
  const std::size_t size = orders_[static_cast<std::size_t>(rank)].size();
  const auto stage = stage_of_pass(orders_[static_cast<std::size_t>(rank)][at]);
  const std::size_t left = size - at - 1;
  std::size_t far = random.one_in(3) ? static_cast<std::size_t>(random.few(16)) - 1
                                     : static_cast<std::size_t>(random.below(96));
  if (random.one_in(8)) far = left;
  far = std::min(far, left);
  change_ = {rank, at, at + 1 + far};
  segment_.clear();
  segment_.push_back({pass_of(stage, kInput), clock_.microbatch(rank, at)});
  for (std::size_t i = at + 1; i < change_.to; ++i) segment_.push_back(placed(rank, i));
  segment_.push_back({pass_of(stage, kWeight), 0});
  return true;
}

// The I at `at` and the next W of its stage become a B, at the position of the I or of the W.
bool Annealer::join(OrderRandom& random, int rank, std::size_t at) {
  const RankOrder& order = orders_[static_cast<std::size_t>(rank)];
  const int stage = stage_of_pass(order[at]);
  std::size_t other = at + 1;
  while (other < order.size() && order[other] != pass_of(stage, kWeight)) ++other;
  if (other == order.size()) return false;
  const bool at_weight = random.one_in(4);
  change_ = {rank, at, other + 1};
  segment_.clear();
  const Placed backward = {pass_of(stage, kBackward), clock_.microbatch(rank, at)};
  if (!at_weight) segment_.push_back(backward);
  for (std::size_t i = at + 1; i < other; ++i) {
    const Pass pass = order[i];
    if (at_weight && stage_of_pass(pass) == stage && takes_gradient(pass)) return false;
    segment_.push_back(placed(rank, i));
  }
  if (at_weight) segment_.push_back(backward);
  return true;
}

// Draws a critical pass. While a critical path stays on one rank, it is as long in any other order of these
// passes (Nowicki and Smutnicki 1996). So three draws in ten are at or near positions where it comes from
// another rank or leaves for one.
OrderClock::Place Annealer::draw_place(OrderRandom& random) const {
  const auto any_of = [&](const std::vector<OrderClock::Place>& places) {
    return places[static_cast<std::size_t>(random.below(static_cast<int>(places.size())))];
  };
  if (clock_.turns().empty() || random.below(10) >= 3) return any_of(clock_.critical());
  OrderClock::Place place = any_of(clock_.turns());
  const int by = random.few(6) - 1;
  const auto size = static_cast<int>(orders_[static_cast<std::size_t>(place.rank)].size());
  place.at = std::clamp(place.at + (random.one_in(2) ? by : -by), 0, size - 1);
  return place;
}

bool Annealer::propose(OrderRandom& random) {
  const OrderClock::Place place = draw_place(random);
  const auto at = static_cast<std::size_t>(place.at);
  const Pass kind = kind_of_pass(orders_[static_cast<std::size_t>(place.rank)][at]);
  if (kind == kBackward && random.one_in(4)) return split(random, place.rank, at);
  if (kind == kInput && random.one_in(4)) return join(random, place.rank, at);
  return rotate(random, place.rank, at);
}

bool Annealer::has_room() const {
  const auto r = static_cast<std::size_t>(change_.rank);
  double live = live_[r][change_.from];
  for (const Placed& each : segment_) {
    if (live + bytes_[each.pass].peak > problem_.capacity[r]) return false;
    live += bytes_[each.pass].change;
  }
  return true;
}

// The longest path through the changed passes. It is at least the end of the step, if the neighbours of these
// passes on other ranks begin no later.
Ticks Annealer::estimate() {
  const auto [rank, from, to] = change_;
  const RankOrder& order = orders_[static_cast<std::size_t>(rank)];
  Ticks now = from == 0 ? 0 : clock_.begin(rank, from - 1) + clock_.ticks(order[from - 1]);
  begins_.resize(segment_.size());
  for (std::size_t i = 0; i < segment_.size(); ++i) {
    begins_[i] = std::max(now, clock_.arrival(segment_[i].pass, segment_[i].microbatch));
    now = begins_[i] + clock_.ticks(segment_[i].pass);
  }
  Ticks way = to == order.size() ? clock_.tail(rank) : clock_.way(rank, to), most = 0;
  for (std::size_t i = segment_.size(); i-- > 0;) {
    way = std::max(way, clock_.way_on(segment_[i].pass, segment_[i].microbatch)) +
          clock_.ticks(segment_[i].pass);
    most = std::max(most, begins_[i] + way);
  }
  work_ += static_cast<std::int64_t>(2 * segment_.size()) + 4;
  return most;
}

Ticks Annealer::apply() {
  RankOrder& order = orders_[static_cast<std::size_t>(change_.rank)];
  kept_ = order;
  const auto at = [&](std::size_t index) { return order.begin() + static_cast<std::ptrdiff_t>(index); };
  const std::size_t gone = change_.to - change_.from;
  if (segment_.size() > gone) order.insert(at(change_.to), segment_.size() - gone, Pass{0});
  if (segment_.size() < gone) order.erase(at(change_.from + segment_.size()), at(change_.to));
  for (std::size_t i = 0; i < segment_.size(); ++i) order[change_.from + i] = segment_[i].pass;
  work_ += passes_;
  return other_.run(orders_);
}

void Annealer::take_back() {
  std::swap(orders_[static_cast<std::size_t>(change_.rank)], kept_);
}

std::int64_t Annealer::run(const AnnealOptions& options) {
  OrderRandom random(options.seed);
  work_ = 0;
  constexpr int kSteps = 64;  // of temperature
  const Ticks worth = best_end_ / 1'000'000 * options.critical_ppm / std::max<std::int64_t>(1, passes_);
  cost_ = end_ + worth * static_cast<Ticks>(clock_.critical().size());
  for (int step = 0; step < kSteps && end_ != kNever && !options.is_stopped(); ++step) {
    const int left = kSteps - step;
    const Ticks ppm =
        options.cold_ppm + (options.hot_ppm - options.cold_ppm) * left * left / (kSteps * kSteps);
    const Ticks mean = best_end_ / 1'000'000 * ppm + best_end_ % 1'000'000 * ppm / 1'000'000;
    const std::int64_t until = options.work / kSteps * (step + 1);
    while (work_ < until) {
      work_ += 4;
      if (clock_.critical().empty() || !propose(random) || !has_room()) continue;
      const Ticks most = cost_ + random.exponential(mean);
      if (estimate() > most) continue;
      const Ticks end = apply();
      if (end > most) {
        take_back();
        continue;
      }
      other_.run_back(orders_);
      work_ += passes_;
      const Ticks cost = end + worth * static_cast<Ticks>(other_.critical().size());
      if (cost > most) {
        take_back();
        continue;
      }
      std::swap(clock_, other_);
      note(change_.rank);
      end_ = end;
      cost_ = cost;
      if (end < best_end_) {
        best_end_ = end;
        best_ = orders_;
      }
    }
  }
  return work_;
}

}  // namespace rehearse
