// Which order is better than a given one? Found by many small changes to its critical passes.
//
// A change rotates a few passes of a rank, splits a B into I and W, or joins them. Its result is first
// estimated from the begins before it and the paths behind it (Balas and Vazacopoulos 1998). Only changes
// that are then likely to be kept are run. Worse orders are kept now and then, more and more seldom.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/order/clock.h"
#include "search/order/random.h"

namespace rehearse {

struct AnnealOptions {
  std::uint64_t seed = 1;
  std::int64_t work = 0;              // passes to visit
  int hot_ppm = 2000, cold_ppm = 10;  // of the step: mean slowdown that is kept, at the start and at the end
  int critical_ppm = 100;  // of the step: gain that is assumed for an order without critical passes
  std::function<bool()> is_stopped = [] { return false; };  // asked now and then
};

class Annealer {
 public:
  // Keeps a reference to `problem`. `start` runs to its end and fits.
  Annealer(const OrderProblem& problem, RankOrders start);

  // Runs until it has spent options.work. Returns the work spent.
  std::int64_t run(const AnnealOptions& options);

  Ticks best_end() const { return best_end_; }
  const RankOrders& best() const { return best_; }
  void restart_from_best();

 private:
  // Passes [from, to) of a rank are replaced by segment_.
  struct Change {
    int rank = 0;
    std::size_t from = 0, to = 0;
  };
  struct Placed {
    Pass pass;
    std::int32_t microbatch;
  };

  OrderClock::Place draw_place(OrderRandom& random) const;
  bool propose(OrderRandom& random);
  bool rotate(OrderRandom& random, int rank, std::size_t at);
  bool split(OrderRandom& random, int rank, std::size_t at);
  bool join(OrderRandom& random, int rank, std::size_t at);
  bool may_swap(int rank, std::size_t first, std::size_t second, int& crossed) const;
  bool has_room() const;
  Ticks estimate();
  Ticks apply();
  void take_back();
  void note(int rank);
  Placed placed(int rank, std::size_t at) const;

  const OrderProblem& problem_;
  std::vector<PassBytes> bytes_;
  RankOrders orders_, best_;
  OrderClock clock_, other_;
  Ticks end_ = 0, best_end_ = 0;
  Ticks cost_ = 0;                                  // the end, plus a cost for its critical passes
  std::vector<std::vector<double>> live_;           // by rank and index: before the pass
  std::vector<std::vector<std::int32_t>> waiting_;  // before an I or W: I of its stage whose W has not run
  std::vector<int> count_;
  Change change_;
  std::vector<Placed> segment_;
  std::vector<Ticks> begins_;
  RankOrder kept_;
  std::int64_t work_ = 0, passes_ = 0;
};

}  // namespace rehearse
