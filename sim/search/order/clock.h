// When does each pass of an order begin, and how long is the longest path from it to the end of the step?
// This is the inner loop of the search: a few nanoseconds a pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/order/orders.h"

namespace rehearse {

class OrderClock {
 public:
  // Keeps a reference to `problem`.
  explicit OrderClock(const OrderProblem& problem);

  // Computes the begins of all passes. Returns the end of the step, or kNever for an order that deadlocks.
  Ticks run(const RankOrders& orders);

  // After run(): computes the longest path from the begin of each pass to the end. A pass is critical if its
  // begin and its path add up to end().
  void run_back(const RankOrders& orders);

  Ticks end() const { return end_; }
  Ticks finish(int rank) const { return finish_[static_cast<std::size_t>(rank)]; }
  Ticks begin(int rank, std::size_t at) const { return begin_[first(rank) + at]; }
  Ticks way(int rank, std::size_t at) const { return way_[first(rank) + at]; }
  int microbatch(int rank, std::size_t at) const { return microbatch_[first(rank) + at]; }

  // Of a pass: when its input from another pass arrives, and the longest path from its end through the pass
  // that reads its result.
  Ticks arrival(Pass pass, int microbatch) const;
  Ticks way_on(Pass pass, int microbatch) const;
  Ticks ticks(Pass pass) const { return ticks_[pass]; }
  // From the end of a rank's last pass to the end of its step.
  Ticks tail(int rank) const { return tail_[static_cast<std::size_t>(rank)]; }

  // Passes on a longest path, which have no slack, as {rank, index}.
  struct Place {
    std::int32_t rank;
    std::int32_t at;
  };
  const std::vector<Place>& critical() const { return critical_; }
  // The critical passes where the longest path comes from another rank, or continues on one.
  const std::vector<Place>& turns() const { return turns_; }

 private:
  std::size_t first(int rank) const { return static_cast<std::size_t>(rank) * stride_; }
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * microbatches_ + static_cast<std::size_t>(microbatch);
  }
  void advance(const RankOrders& orders, int rank);
  void finish_rank(int rank);

  const OrderProblem* problem_;
  std::size_t microbatches_ = 0, stride_ = 0;
  std::vector<Ticks> ticks_;  // by Pass
  std::vector<Ticks> begin_, way_;
  std::vector<std::int32_t> microbatch_;
  std::vector<std::uint32_t> done_;                // indices in the order in which they were found
  std::vector<Ticks> forward_end_, gradient_end_;  // by cell; below 0: not yet
  std::vector<Ticks> forward_way_, gradient_way_;
  std::vector<int> forwards_, gradients_;     // by stage: passes done
  std::vector<Ticks> last_end_, last_ticks_;  // by stage: of the pass that completes its gradients last
  std::vector<std::size_t> cursor_;
  std::vector<std::int64_t> waits_for_;  // by rank: cell of a forward, or of a gradient + all cells; -1: none
  std::vector<int> ready_;
  std::vector<Ticks> free_, finish_, tail_;
  std::vector<std::vector<int>> stages_of_;  // by rank
  bool reduces_ = false;
  Ticks end_ = 0;
  std::vector<Place> critical_, turns_;
};

}  // namespace rehearse
