// Which tensors does a kernel read or write, and which role does each have?
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace rehearse {

using TensorId = std::int16_t;  // index into Block::tensors

// Role of a tensor among those that the kernel reads or writes. A slot that the kernel's type does not name
// stays empty. No code infers a role from the number of tensors.
enum class Slot : std::uint8_t {
  operand,          // the tensors that the kernel is about, in an order that its type fixes
  weight,           // of a GEMM or a norm; of Adam the copy in lower precision
  bias,             // added to each row
  right,            // second operand of a GEMM of two activations
  input,            // of the layer, to the kernel that makes its weight's gradient
  output,           // of the layer, to its backward kernel
  output_gradient,  // of attention
  residual,         // that a branch is added to
  mask,             // of dropout
  row_weights,      // one for each row of an expert
  choices,          // of experts by each token
  map,              // from rows to the experts of a rank
  keys,             // of attention
  values,           // of attention
  keys_and_values,  // of attention in one tensor: all keys, then all values
  arriving,         // keys and values, or their gradients, from the next rank of a ring
  sinks,            // of attention
  held,             // read by nothing: stays live until the kernel has run
  log_sum_exp,      // of attention, one for each row and head
  sum,              // so far, of merged tensors
  sum_of_keys,      // so far, of gradients of keys and values
  sum_of_log_sums,  // so far, of log_sum_exp
  loss,             // of each token
  labels,           // of tokens
  target,           // logit of each token's label
  maximum,          // of each token's logits
  exponential_sum,  // of each token's logits
  scale,            // one number that all elements are multiplied by, or quantized by
  columns,          // quantized for the GEMM that reads columns
  channels,         // of a convolution, whose parts are split over ranks one by one
};

struct SlottedTensor {
  // NOLINTNEXTLINE(google-explicit-constructor): most tensors of a kernel are plain operands
  SlottedTensor(TensorId id, Slot slot_of = Slot::operand) : tensor(id), slot(slot_of) {}
  TensorId tensor;
  Slot slot;
};

// The tensors of a kernel, in the order in which it lists them.
class KernelTensors {
 public:
  using value_type = TensorId;
  using const_iterator = std::vector<TensorId>::const_iterator;

  KernelTensors() = default;
  KernelTensors(std::initializer_list<SlottedTensor> tensors) {
    for (const SlottedTensor& each : tensors) push_back(each.tensor, each.slot);
  }
  // NOLINTNEXTLINE(google-explicit-constructor): all of them plain operands
  KernelTensors(std::vector<TensorId> operands) : ids_(std::move(operands)) {}

  const_iterator begin() const { return ids_.begin(); }
  const_iterator end() const { return ids_.end(); }
  bool empty() const { return ids_.empty(); }
  std::size_t size() const { return ids_.size(); }
  TensorId operator[](std::size_t i) const { return ids_[i]; }
  TensorId at(std::size_t i) const { return ids_.at(i); }
  TensorId front() const { return ids_.front(); }
  const std::vector<TensorId>& ids() const { return ids_; }
  // NOLINTNEXTLINE(google-explicit-constructor): for readers that treat all tensors alike
  operator const std::vector<TensorId>&() const { return ids_; }

  Slot slot(std::size_t i) const { return slots_.empty() ? Slot::operand : slots_.at(i); }
  // The first tensor in the slot; -1: it is empty.
  TensorId in(Slot slot) const {
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (this->slot(i) == slot) return ids_[i];
    return -1;
  }
  bool has(Slot slot) const { return in(slot) >= 0; }
  std::vector<TensorId> all_in(Slot slot) const {
    std::vector<TensorId> all;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      if (this->slot(i) == slot) all.push_back(ids_[i]);
    return all;
  }

  void push_back(TensorId tensor, Slot slot = Slot::operand) {
    if (slots_.empty() && slot != Slot::operand) slots_.assign(ids_.size(), Slot::operand);
    if (!slots_.empty() || slot != Slot::operand) slots_.push_back(slot);
    ids_.push_back(tensor);
  }
  void append(const KernelTensors& others) {
    for (std::size_t i = 0; i < others.size(); ++i) push_back(others[i], others.slot(i));
  }
  void replace(TensorId old, TensorId by) { std::replace(ids_.begin(), ids_.end(), old, by); }

 private:
  std::vector<TensorId> ids_;
  std::vector<Slot> slots_;  // of each; empty: all are operands, as in most kernels
};

}  // namespace rehearse
