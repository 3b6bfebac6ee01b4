// Which order results when every rank takes the best pass that is ready, by a few rules, within its memory?
#pragma once

#include <vector>

#include "search/order/orders.h"

namespace rehearse {

struct GreedyRules {
  int group = 1, group_back = 1;  // microbatches through a chunk before the next one: of F, and of B or I
  // By rank: forwards without their gradient, below which a forward goes first. `slack`: how many more of
  // them are allowed while no gradient has arrived.
  std::vector<int> depth;
  int slack = 0;
  // By rank, numbering its backwards as they run: those from `split_from` to before `split_to` are split into
  // I and W, and so are the last `split_last`.
  std::vector<int> split_from, split_to, split_last;
  int patience = 0;  // eighths of a W that a rank would rather idle for an incoming pass

  bool operator==(const GreedyRules&) const = default;
};

class Greedy {
 public:
  // Keeps a reference to `problem`.
  explicit Greedy(const OrderProblem& problem);

  // The end of the last pass, without reductions and steps. kNever where the rules and the memory stop all
  // progress; orders() is then unfinished.
  Ticks run(const GreedyRules& rules);
  const RankOrders& orders() const { return orders_; }

 private:
  struct Event {
    Ticks time;
    std::int32_t rank;
  };
  struct Rank {
    std::vector<int> stages;    // ascending
    std::vector<double> later;  // bytes that the later chunks of a microbatch need
    int in_flight = 0, backwards = 0, weights_waiting = 0;
    double live = 0;
    Ticks free = 0;
  };

  void wake(Ticks time, int rank);
  void decide(Ticks now, int rank, const GreedyRules& rules);
  bool forward(Ticks now, int rank, int group);
  bool gradient(Ticks now, int rank, const GreedyRules& rules);
  bool weight(Ticks now, int rank, int patience);
  void take(Ticks now, int rank, Pass pass, int microbatch);
  Ticks input_of_forward(int stage) const;
  Ticks input_of_gradient(int stage) const;
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(problem_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }

  const OrderProblem& problem_;
  std::vector<PassBytes> bytes_;
  std::vector<Ticks> ticks_;
  std::vector<Rank> ranks_;
  std::vector<Event> events_;
  std::vector<Ticks> forward_end_, gradient_end_;
  std::vector<int> forwards_, gradients_, waiting_;  // by stage
  RankOrders orders_;
  std::size_t left_ = 0;  // forwards and gradients that have not been taken
};

}  // namespace rehearse
