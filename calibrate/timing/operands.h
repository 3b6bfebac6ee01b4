// The memory of a timed kernel: several sets of its tensors, filled as in training.
#pragma once

#include <map>
#include <vector>

#include "calibrate/timing/jobs.h"
#include "kernels/device.h"

namespace rehearse {

class Operands {
 public:
  // Makes enough sets for `least_bytes` in total, at least one.
  Operands(kernels::Device& device, kernels::Stream& stream, const Jobs& jobs, const KernelJob& job,
           double least_bytes);

  std::size_t sets() const { return sets_; }
  std::vector<kernels::Call> calls(std::size_t set) const;

 private:
  std::byte* address(std::size_t set, TensorId matrix) const;
  void fill(kernels::Stream& stream);
  void fill_integers(kernels::Stream& stream, TensorId id);

  const Jobs& jobs_;
  const KernelJob& job_;
  std::vector<TensorPlace> places_;
  std::map<TensorId, std::size_t> offset_;  // of a matrix in a set
  std::size_t set_bytes_ = 0;
  std::size_t sets_ = 1;
  kernels::Buffer memory_;
  kernels::Buffer scratch_;    // rows of choices
  kernels::Buffer positions_;  // of queries that see more keys than there are queries
};

}  // namespace rehearse
