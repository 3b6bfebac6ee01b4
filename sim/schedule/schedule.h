// Which ops does each pipeline rank run, in which order, on which stream, and after which other ops?
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "schedule/op.h"

namespace rehearse {

// The ops of one pipeline rank in issue order. A wait names an earlier op of the same rank by its index.
class RankOps {
 public:
  // Appends and returns the index. Waits must be smaller than it. Waits of -1 are ignored.
  std::int32_t add(Op op, std::span<const std::int32_t> waits = {});
  std::int32_t add(Op op, std::initializer_list<std::int32_t> waits) {
    return add(op, std::span<const std::int32_t>(waits.begin(), waits.size()));
  }

  std::span<const std::int32_t> waits(const Op& op) const {
    return {waits_.data() + op.first_wait, op.wait_count};
  }
  const std::vector<Op>& ops() const { return ops_; }
  std::size_t size() const { return ops_.size(); }
  const Op& operator[](std::size_t index) const { return ops_[index]; }
  void reserve(std::size_t ops) { ops_.reserve(ops); }

 private:
  std::vector<Op> ops_;
  std::vector<std::int32_t> waits_;
};

// One list per pipeline rank; all ranks that share a pipeline coordinate run the same list.
struct Schedule {
  int pp = 1;
  int stages = 1;
  int microbatches = 1;
  std::vector<RankOps> ranks;
};

}  // namespace rehearse
