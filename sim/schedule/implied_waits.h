// Which op does an op wait for when no wait is stated? By this rule texts omit waits, and CSV files get them
// back.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "schedule/op.h"

namespace rehearse {

// Walks one rank's list. The implied waits are:
// - F waits for its RECV_F, B and I for their RECV_B.
// - A SEND waits for the op that computed its tensor.
// - Reductions wait for the rank's latest weight gradient.
// - STEP waits for the latest reduction.
//
// Later parts of a split op wait for nothing: they follow the first part.
class ImpliedWaits {
 public:
  // Waits of `op` given the ops noted so far; at most one.
  std::vector<std::int32_t> of(const Op& op) const;
  void note(const Op& op, std::int32_t index);

 private:
  std::int32_t find(OpKind kind, const Op& op) const;

  std::unordered_map<std::uint64_t, std::int32_t> latest_;  // by kind, stage and microbatch
  std::int32_t latest_gradient_ = -1;
  std::int32_t latest_reduction_ = -1;
};

}  // namespace rehearse
