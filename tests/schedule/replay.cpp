#include "replay.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <tuple>

namespace rehearse {

namespace {

constexpr double kPending = -1;

struct Receive {
  std::size_t rank = 0;
  std::size_t op = 0;
};

// Sweeps over all lists again and again; an op gets its end time once all it depends on have theirs.
class Sweeps {
 public:
  Sweeps(const Schedule& schedule, const ChunkTimes& times) : schedule_(schedule), times_(times) {
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const RankOps& ops = schedule.ranks[rank];
      end_.emplace_back(ops.size(), kPending);
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const Op& op = ops[i];
        queues_[rank][static_cast<std::size_t>(op.stream)].push_back(i);
        if (is_receive(op.kind)) receives_[{op.kind, op.stage, op.microbatch}] = {rank, i};
        ++left_;
      }
    }
  }

  Replay run() {
    Replay result{0, std::vector<double>(schedule_.ranks.size(), 0), 0};
    for (bool moved = true; moved && left_ > 0;) {
      moved = false;
      for (auto& [rank, queues] : queues_)
        for (auto& [stream, queue] : queues) {
          std::size_t& next = next_[{rank, stream}];
          while (next < queue.size() && advance(rank, queue[next], result)) {
            ++next;
            moved = true;
          }
        }
    }
    if (left_ > 0) throw std::runtime_error("the schedule stops short of its end");
    return result;
  }

 private:
  double duration(const Op& op) const { return whole_duration(op.kind) / op.parts; }

  double whole_duration(OpKind kind) const {
    if (is_send(kind)) return times_.message;
    if (kind == OpKind::forward) return times_.forward;
    if (kind == OpKind::backward_input) return times_.input;
    if (kind == OpKind::backward_weight) return times_.weight;
    return kind == OpKind::backward ? times_.input + times_.weight : 0;
  }

  // Earliest begin by the earlier ops of the op's own list, or kPending.
  double ready(std::size_t rank, std::size_t i) {
    const RankOps& ops = schedule_.ranks[rank];
    double begin = 0;
    const auto after = [&](std::size_t earlier) {
      const double end = end_[rank][earlier];
      begin = begin == kPending || end == kPending ? kPending : std::max(begin, end);
    };
    const auto& queue = queues_[rank][static_cast<std::size_t>(ops[i].stream)];
    const auto at = std::ranges::lower_bound(queue, i);
    if (at != queue.begin()) after(*(at - 1));
    for (const std::int32_t wait : ops.waits(ops[i])) after(static_cast<std::size_t>(wait));
    return begin;
  }

  bool advance(std::size_t rank, std::size_t i, Replay& result) {
    if (end_[rank][i] != kPending) return true;  // a receive that its sender has ended
    const Op& op = schedule_.ranks[rank][i];
    double begin = ready(rank, i);
    if (begin == kPending || is_receive(op.kind)) return false;
    if (is_send(op.kind)) {
      const bool forward = op.kind == OpKind::send_forward;
      const auto [peer, receive] = receives_.at({forward ? OpKind::recv_forward : OpKind::recv_backward,
                                                 forward ? op.stage + 1 : op.stage - 1, op.microbatch});
      const double other = ready(peer, receive);
      if (other == kPending) return false;
      begin = std::max(begin, other);
      end_[peer][receive] = begin + duration(op);
      --left_;
    }
    end_[rank][i] = begin + duration(op);
    if (is_compute(op.kind)) {
      first_.try_emplace(rank, begin);
      result.busy[rank] += duration(op);
      result.longest_span = std::max(result.longest_span, end_[rank][i] - first_[rank]);
    }
    result.makespan = std::max(result.makespan, end_[rank][i]);
    --left_;
    return true;
  }

  const Schedule& schedule_;
  ChunkTimes times_;
  std::vector<std::vector<double>> end_;                                           // by rank and op
  std::map<std::size_t, std::map<std::size_t, std::vector<std::size_t>>> queues_;  // by rank and stream
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> next_;
  std::map<std::tuple<OpKind, int, int>, Receive> receives_;
  std::map<std::size_t, double> first_;  // begin of a rank's first compute op
  std::size_t left_ = 0;
};

}  // namespace

Replay replay(const Schedule& schedule, const ChunkTimes& times) {
  return Sweeps(schedule, times).run();
}

}  // namespace rehearse
