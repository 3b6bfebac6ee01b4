// Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", sections 3 and 4: V-Half and V-Min. A
// building block, the slots of one microbatch on every rank, is repeated every six slots. The time between a
// rank's forward and its W decides the number of live activations. Then the ends are squeezed within that
// memory. Peak activations are about a half and a third of those of 1F1B.
#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>

#include "schedule/orders.h"
#include "schedule/orders/v_rank.h"

namespace rehearse {

namespace {

constexpr int kPeriod = 6;                   // F, I and W of two chunks
constexpr int kPasses = 4;                   // through the stages: F and F of chunk 1, I of chunk 1, I
using RankBlock = std::array<int, kPasses>;  // slot of each pass; W take the slots that are left

// The paper's figure of V-Half. It is three slots longer where passes would meet in a slot.
RankBlock v_half_block(int pp, int rank) {
  const int gap = pp % 2 == 0 ? 3 : 0;
  return {2 * rank, 3 * pp - rank - 2, 3 * pp + gap + 2 * rank - 1, 6 * pp + gap - rank - 2};
}

RankBlock v_min_block(int pp, int rank) {
  const int gap = pp % 3 == 0 ? 2 : 0;
  return {rank, 2 * pp - rank - 1, 2 * pp + gap + rank, 4 * pp + gap - rank - 1};
}

// The pass in each slot of a rank, and the activations that the rank holds before it.
class Row {
 public:
  Row(const RankBlock& block, int microbatches)
      : pass_(static_cast<std::size_t>(block.back() + kPeriod * (microbatches - 1) + 1), kIdle),
        before_(pass_.size() + 1) {
    for (int pass = 0; pass < kPasses; ++pass)
      for (int i = 0; i < microbatches; ++i)
        at(block[static_cast<std::size_t>(pass)] + kPeriod * i) = static_cast<std::int8_t>(pass);
    peak_ = refill(0, static_cast<int>(pass_.size()));
  }

  int slots() const { return static_cast<int>(pass_.size()); }
  int peak() const { return peak_; }
  int pass(int slot) const { return pass_[static_cast<std::size_t>(slot)]; }
  bool idle(int slot) const { return pass(slot) == kIdle; }

  // Moves the pass in slot `from` to the idle slot `to` before it, unless the rank would then hold more than
  // `most` chunk activations.
  bool move(int from, int to, int most) {
    std::swap(at(from), at(to));
    if (refill(to, from) <= most) return true;
    std::swap(at(from), at(to));
    refill(to, from);
    return false;
  }

  static constexpr std::int8_t kIdle = -1;

 private:
  struct Held {
    int activations = 0;
    int waiting = 0;  // I whose W has not run
    bool operator==(const Held&) const = default;
  };

  std::int8_t& at(int slot) { return pass_[static_cast<std::size_t>(slot)]; }

  // Updates held activations from `first` to `last`, and further as long as they differ. Returns the maximum
  // on the way. An idle slot runs a W.
  int refill(int first, int last) {
    int most = 0;
    for (int slot = first; slot < slots(); ++slot) {
      Held held = before_[static_cast<std::size_t>(slot)];
      if (idle(slot)) {
        const int weight = std::min(held.waiting, 1);
        held.waiting -= weight;
        held.activations -= weight;
      } else if (pass(slot) < 2) {
        ++held.activations;
      } else {
        ++held.waiting;
      }
      most = std::max(most, held.activations);
      Held& next = before_[static_cast<std::size_t>(slot) + 1];
      if (slot > last && next == held) break;
      next = held;
    }
    return most;
  }

  std::vector<std::int8_t> pass_;
  std::vector<Held> before_;
  int peak_ = 0;
};

// The repeated block leaves empty slots before the first rank has its first gradient, and after its last new
// microbatch. Each pass there moves to the earliest slot that its input and the memory allow.
class Squeeze {
 public:
  Squeeze(std::vector<RankBlock> blocks, int microbatches)
      : blocks_(std::move(blocks)),
        microbatches_(microbatches),
        slot_(blocks_.size() * kPasses * static_cast<std::size_t>(microbatches)) {
    for (int rank = 0; rank < ranks(); ++rank) {
      const RankBlock& block = blocks_[static_cast<std::size_t>(rank)];
      rows_.emplace_back(block, microbatches);
      for (int pass = 0; pass < kPasses; ++pass)
        for (int i = 0; i < microbatches; ++i)
          slot(rank, pass, i) = block[static_cast<std::size_t>(pass)] + kPeriod * i;
    }
  }

  const std::vector<Row>& run() {
    int most = 0, slots = 0;
    for (const Row& row : rows_) {
      most = std::max(most, row.peak());
      slots = std::max(slots, row.slots());
    }
    const int steady_begin = slot(0, 3, 0);
    const int steady_end = slot(0, 0, microbatches_ - 1);
    for (int now = 0; now < slots; ++now) {
      if (now >= steady_begin && now <= steady_end) continue;
      for (int rank = 0; rank < ranks(); ++rank) squeeze(rank, now, most);
    }
    return rows_;
  }

 private:
  int ranks() const { return static_cast<int>(blocks_.size()); }

  int& slot(int rank, int pass, int microbatch) {
    return slot_[static_cast<std::size_t>((rank * kPasses + pass) * microbatches_ + microbatch)];
  }

  // Moves the pass of the block in slot `now`, if there is one.
  void squeeze(int rank, int now, int most) {
    for (int pass = 0; pass < kPasses; ++pass) {
      const int since = now - blocks_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(pass)];
      if (since < 0 || since % kPeriod != 0 || since / kPeriod >= microbatches_) continue;
      const int microbatch = since / kPeriod;
      Row& row = rows_[static_cast<std::size_t>(rank)];
      for (int to = input_slot(rank, pass, microbatch) + 1; to < now; ++to) {
        if (!row.idle(to) || !row.move(now, to, most)) continue;
        slot(rank, pass, microbatch) = to;
        break;
      }
    }
  }

  // The latest slot of a pass's inputs: its neighbour, the pass before it, the microbatch before it.
  int input_slot(int rank, int pass, int microbatch) {
    const int neighbour = pass % 2 == 0 ? rank - 1 : rank + 1;
    int latest = -1;
    if (neighbour >= 0 && neighbour < ranks()) latest = slot(neighbour, pass, microbatch);
    if (pass > 0) latest = std::max(latest, slot(rank, pass - 1, microbatch));
    if (microbatch > 0) latest = std::max(latest, slot(rank, pass, microbatch - 1));
    return latest;
  }

  std::vector<RankBlock> blocks_;  // by rank
  int microbatches_;
  std::vector<int> slot_;  // by rank, pass and microbatch
  std::vector<Row> rows_;
};

// Passes in slot order. Idle slots run the W that has waited longest.
void add_rank(VRank ops, const Row& row) {
  std::deque<int> waiting;  // chunks
  const auto weight = [&] {
    ops.weight(waiting.front());
    waiting.pop_front();
  };
  for (int slot = 0; slot < row.slots(); ++slot) {
    const int pass = row.pass(slot);
    if (pass == Row::kIdle) {
      if (!waiting.empty()) weight();
    } else if (pass < 2) {
      ops.forward(pass);
    } else {
      ops.input(3 - pass);
      waiting.push_back(3 - pass);
    }
  }
  while (!waiting.empty()) weight();
}

Schedule from_block(RankBlock (*block)(int, int), int pp, int microbatches) {
  std::vector<RankBlock> blocks;
  for (int rank = 0; rank < pp; ++rank) blocks.push_back(block(pp, rank));
  Squeeze squeeze(std::move(blocks), microbatches);
  const std::vector<Row>& rows = squeeze.run();
  Schedule schedule{pp, 2 * pp, microbatches, {}};
  for (int rank = 0; rank < pp; ++rank)
    add_rank(VRank(schedule.ranks.emplace_back(), pp, rank, microbatches),
             rows[static_cast<std::size_t>(rank)]);
  return schedule;
}

}  // namespace

Schedule orders::v_half(const OrderShape& shape) {
  return from_block(v_half_block, shape.pp, shape.microbatches);
}

Schedule orders::v_min(const OrderShape& shape) {
  return from_block(v_min_block, shape.pp, shape.microbatches);
}

}  // namespace rehearse
