#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "schedule/passes.h"
#include "schedule/placement.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

// Decides only the order of messages. A full backward costs about two forwards (Narayanan et al. 2021,
// section 2.2). So a message is issued when it would be sent with equal stages.
int nominal_steps(OpKind kind) {
  return kind == OpKind::backward ? 2 : 1;
}

constexpr std::int32_t kAbsent = -2;    // the input of a compute op has not been produced
constexpr std::int32_t kSameRank = -1;  // it was produced on the same rank; otherwise: index of its RECV

// All ranks advance together in nominal time. At each instant, ops that end send their messages before other
// ops begin. The sender also inserts the receiver's op. So all lists agree with one global order of messages.
class TransferWalk {
 public:
  TransferWalk(const Schedule& order, bool overlap);
  Schedule run();

 private:
  struct Progress {
    std::size_t next = 0;       // in the compute-only list
    std::int32_t running = -1;  // in the new list
    int ends = 0;
    std::array<std::int32_t, kStreams>
        unwaited{};  // last message of each stream that no compute op waited for
  };

  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * static_cast<std::size_t>(order_.microbatches) +
           static_cast<std::size_t>(microbatch);
  }
  std::int32_t input(const Op& op) const;
  bool can_begin(std::size_t rank) const;
  void begin(std::size_t rank, int now);
  void end(std::size_t rank);
  int reader(const Op& op) const;
  bool sends(std::size_t rank) const;
  std::int32_t add_message(std::size_t rank, const Op& op, std::int32_t wait);
  [[noreturn]] void report_stuck() const;

  const Schedule& order_;
  bool overlap_;
  std::vector<int> rank_of_;
  std::vector<std::int32_t> activation_;  // input of F, by stage and microbatch
  std::vector<std::int32_t> gradient_;    // input of B and I
  std::vector<Progress> progress_;
  Schedule result_;
};

TransferWalk::TransferWalk(const Schedule& order, bool overlap)
    : order_(order),
      overlap_(overlap),
      rank_of_(ranks_by_stage(order)),
      activation_(cell(order.stages, 0), kAbsent),
      gradient_(activation_),
      progress_(order.ranks.size()),
      result_{order.pp, order.stages, order.microbatches, std::vector<RankOps>(order.ranks.size())} {
  std::fill_n(activation_.begin(), std::min<std::size_t>(cell(1, 0), activation_.size()), kSameRank);
  for (std::size_t rank = 0; rank < order.ranks.size(); ++rank) {
    result_.ranks[rank].reserve(2 * order.ranks[rank].size());
    progress_[rank].unwaited.fill(-1);
    for (const Op& op : order.ranks[rank].ops())
      if (!is_compute(op.kind) || op.parts != 1 || op.stage >= order.stages || op.microbatch < 0 ||
          op.microbatch >= order.microbatches)
        throw std::logic_error("transfers are added to whole compute ops only, not to " + to_string(op));
  }
}

Schedule TransferWalk::run() {
  for (int now = 0;; ++now) {
    const auto ends_now = [&](std::size_t rank) {
      return progress_[rank].running >= 0 && progress_[rank].ends == now;
    };
    // Ranks without anything to send continue before the messages of this instant. They need not wait for
    // them.
    for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
      if (!ends_now(rank) || sends(rank)) continue;
      end(rank);
      if (can_begin(rank)) begin(rank, now);
    }
    for (std::size_t rank = 0; rank < progress_.size(); ++rank)
      if (ends_now(rank)) end(rank);
    bool running = false;
    bool left = false;
    for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
      if (can_begin(rank)) begin(rank, now);
      running |= progress_[rank].running >= 0;
      left |= progress_[rank].next < order_.ranks[rank].size();
    }
    if (!running && left) report_stuck();
    if (!running) return std::move(result_);
  }
}

// The stage that reads the result of `op`, or -1.
int TransferWalk::reader(const Op& op) const {
  if (op.kind == OpKind::forward) return op.stage + 1 < order_.stages ? op.stage + 1 : -1;
  return op.kind == OpKind::backward_weight ? -1 : op.stage - 1;
}

bool TransferWalk::sends(std::size_t rank) const {
  const int to = reader(result_.ranks[rank][static_cast<std::size_t>(progress_[rank].running)]);
  return to >= 0 && rank_of_[static_cast<std::size_t>(to)] != static_cast<int>(rank);
}

std::int32_t TransferWalk::input(const Op& op) const {
  if (op.kind == OpKind::forward) return activation_[cell(op.stage, op.microbatch)];
  if (op.kind == OpKind::backward_weight) return kSameRank;
  return gradient_[cell(op.stage, op.microbatch)];
}

bool TransferWalk::can_begin(std::size_t rank) const {
  const Progress& progress = progress_[rank];
  const RankOps& ops = order_.ranks[rank];
  return progress.running < 0 && progress.next < ops.size() && input(ops[progress.next]) != kAbsent;
}

void TransferWalk::begin(std::size_t rank, int now) {
  Progress& progress = progress_[rank];
  const Op& op = order_.ranks[rank][progress.next++];
  std::array<std::int32_t, kStreams> waits;
  waits.fill(-1);
  if (!overlap_) waits = std::exchange(progress.unwaited, waits);
  const std::int32_t received = input(op);
  if (received >= 0) {
    const OpKind receive = op.kind == OpKind::forward ? OpKind::recv_forward : OpKind::recv_backward;
    std::int32_t& wait = waits[static_cast<std::size_t>(stream_of(receive))];
    wait = std::max(wait, received);
  }
  progress.running = result_.ranks[rank].add(op, waits);
  progress.ends = now + nominal_steps(op.kind);
}

void TransferWalk::end(std::size_t rank) {
  const std::int32_t index = std::exchange(progress_[rank].running, -1);
  const Op op = result_.ranks[rank][static_cast<std::size_t>(index)];
  const bool forward = op.kind == OpKind::forward;
  const int to = reader(op);
  if (forward && to < 0) gradient_[cell(op.stage, op.microbatch)] = kSameRank;
  if (to < 0 || rank_of_[static_cast<std::size_t>(to)] < 0) return;

  const int receiver = rank_of_[static_cast<std::size_t>(to)];
  std::int32_t arrived = kSameRank;
  if (receiver != static_cast<int>(rank)) {
    const OpKind send = forward ? OpKind::send_forward : OpKind::send_backward;
    const OpKind receive = forward ? OpKind::recv_forward : OpKind::recv_backward;
    add_message(rank, make_op(send, op.stage, op.microbatch), index);
    arrived = add_message(static_cast<std::size_t>(receiver), make_op(receive, to, op.microbatch), -1);
  }
  (forward ? activation_ : gradient_)[cell(to, op.microbatch)] = arrived;
}

std::int32_t TransferWalk::add_message(std::size_t rank, const Op& op, std::int32_t wait) {
  const std::int32_t index = result_.ranks[rank].add(op, {wait});
  progress_[rank].unwaited[static_cast<std::size_t>(op.stream)] = index;
  return index;
}

void TransferWalk::report_stuck() const {
  std::vector<std::string> heads;
  std::vector<std::pair<int, int>> marked;
  for (std::size_t rank = 0; rank < progress_.size(); ++rank) {
    const std::size_t next = progress_[rank].next;
    if (next >= order_.ranks[rank].size()) continue;
    heads.push_back(fmt::format("rank {} is at {}", rank, to_string(order_.ranks[rank][next])));
    marked.emplace_back(static_cast<int>(rank), static_cast<int>(next));
  }
  throw InputError(Violation{.file = {},
                             .pointer = {},
                             .rule = "the order of compute ops must let every op get its input",
                             .values = join(heads),
                             .nearest = "\n" + compute_table(order_, marked)});
}

}  // namespace

Schedule add_transfers(const Schedule& schedule, bool overlap) {
  return TransferWalk(schedule, overlap).run();
}

}  // namespace rehearse
