// DeepSeek-AI 2024, "DeepSeek-V3 Technical Report", section 3.2.1, in the V shape of
// github.com/deepseek-ai/DualPipe. There a forward runs beside a backward of another microbatch, which hides
// the expert all-to-alls. Here the two follow each other. InputError for too few microbatches.
#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "base/error.h"
#include "plan/schedules.h"
#include "schedule/orders.h"
#include "schedule/orders/v_rank.h"

namespace rehearse {

namespace {

// Writes one rank; the steps are numbered as in the source of DualPipe.
class DualPipeRank {
 public:
  DualPipeRank(VRank ops, int pp, int rank, int microbatches)
      : ops_(ops), rank_(rank), after_(pp - rank - 1), steady_(microbatches - 2 * pp + rank + 1) {}

  void run() {
    repeat(2 * after_, [&] { ops_.forward(0); });  // 1
    repeat(rank_ + 1, [&] {                        // 2
      ops_.forward(0);
      ops_.forward(1);
    });
    repeat(after_, [&] {  // 3
      input(1);
      weight();
      ops_.forward(1);
    });
    repeat(steady_, [&] {  // 4
      ops_.forward(0);
      ops_.backward(1);
      ops_.forward(1);
      ops_.backward(0);
    });
    repeat(after_, [&] {  // 5
      ops_.backward(1);
      ops_.forward(1);
      ops_.backward(0);
    });
    drain();
  }

 private:
  template <typename Step>
  static void repeat(int times, Step step) {
    for (int i = 0; i < times; ++i) step();
  }

  void input(int chunk) {
    ops_.input(chunk);
    waiting_.push_back(chunk);
  }

  void weight() {
    if (waiting_.empty()) return;
    ops_.weight(waiting_.front());
    waiting_.pop_front();
  }

  // Backwards of both chunks. The second half of them is split, and their W end the list.
  void drain() {
    const int whole = rank_ + 1;  // of 2 (rank + 1): the first half
    int i = 0;
    const auto backward = [&](int chunk) {
      if (i++ < whole) return ops_.backward(chunk);
      input(chunk);
    };
    repeat(rank_ + 1, [&] {  // 6
      backward(1);
      backward(0);
    });
    repeat(after_, [&] {  // 7
      weight();
      backward(0);
    });
    repeat(rank_ + 1, [&] { weight(); });  // 8
  }

  VRank ops_;
  int rank_;
  int after_;                // ranks after this one
  int steady_;               // rounds of the main step
  std::deque<int> waiting_;  // chunks whose I has no W yet, in order
};

}  // namespace

Schedule orders::dualpipe_v(const OrderShape& shape) {
  const int pp = shape.pp, microbatches = shape.microbatches;
  const int each = traits(ScheduleName::dualpipe_v).min_microbatches, least = each * pp;
  if (microbatches < least)
    throw InputError(Violation{.file = {},
                               .pointer = {},
                               .rule = fmt::format("dualpipe-v needs at least {} x pp microbatches", each),
                               .values = fmt::format("microbatches = {}, pp = {}", microbatches, pp),
                               .nearest = fmt::format("{} microbatches", least)});
  Schedule schedule{pp, 2 * pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    DualPipeRank(VRank(schedule.ranks.emplace_back(), pp, rank, microbatches), pp, rank, microbatches).run();
  return schedule;
}

}  // namespace rehearse
