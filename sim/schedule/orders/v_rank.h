// How is the list of one rank of a V-shaped pipeline written, op by op?
#pragma once

#include <array>

#include "schedule/schedule.h"

namespace rehearse {

// Rank r runs stage r as its chunk 0 and stage 2 pp - 1 - r as its chunk 1 (Qi et al. 2024, section 3.2).
// Each kind of op takes the microbatches of a chunk in order. Ops beyond `microbatches` are omitted.
class VRank {
 public:
  VRank(RankOps& ops, int pp, int rank, int microbatches)
      : ops_(ops), stages_{rank, 2 * pp - 1 - rank}, microbatches_(microbatches) {
    ops_.reserve(6 * static_cast<std::size_t>(microbatches));
  }

  void forward(int chunk) { add(OpKind::forward, chunk); }
  void input(int chunk) { add(OpKind::backward_input, chunk); }
  void weight(int chunk) { add(OpKind::backward_weight, chunk); }

  int forwards(int chunk) const { return count(OpKind::forward, chunk); }
  int inputs(int chunk) const { return count(OpKind::backward_input, chunk); }
  int weights(int chunk) const { return count(OpKind::backward_weight, chunk); }

  // A whole backward replaces an I and a W.
  void backward(int chunk) {
    const int microbatch = count_[kind(OpKind::backward_input)][at(chunk)]++;
    ++count_[kind(OpKind::backward_weight)][at(chunk)];
    if (microbatch < microbatches_) ops_.add(make_op(OpKind::backward, stages_[at(chunk)], microbatch));
  }

 private:
  static std::size_t kind(OpKind of) { return static_cast<std::size_t>(of); }
  static std::size_t at(int chunk) { return static_cast<std::size_t>(chunk); }
  int count(OpKind of, int chunk) const { return count_[kind(of)][at(chunk)]; }

  void add(OpKind of, int chunk) {
    const int microbatch = count_[kind(of)][at(chunk)]++;
    if (microbatch < microbatches_) ops_.add(make_op(of, stages_[at(chunk)], microbatch));
  }

  RankOps& ops_;
  std::array<int, 2> stages_;
  int microbatches_;
  std::array<std::array<int, 2>, 4> count_{};  // by compute kind and chunk
};

}  // namespace rehearse
