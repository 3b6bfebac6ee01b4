// How a block is written down: its forward kernels in order, each step with what undoes it. finish() runs the
// undoing steps last to first, as automatic differentiation does, and sums the gradients of a tensor that
// several kernels read.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/work.h"
#include "plan/work/shape.h"

namespace rehearse {

class BlockBuilder {
 public:
  BlockBuilder(std::string name, const Shape& shape, BlockKind kind);

  TensorId input(std::string name, double elements);
  TensorId batch(std::string name, double elements);  // 64-bit token ids
  TensorId batch(std::string name, double elements, double element_bytes);
  TensorId activation(std::string name, double elements);
  TensorId activation(std::string name, double elements, double element_bytes);
  TensorId parameter(std::string name, double elements, std::int16_t matrices = 1);
  TensorId expert_parameter(std::string name, double elements);  // of routed experts
  TensorId tied_parameter(std::string name, double elements);
  void share_out(TensorId parameter, RankShare share);  // -1: there is none
  void mark(TensorId tensor, TensorUse use);
  void parameters_are(TensorUse use) { use_ = use; }  // those from here on

  // The kernels from here on, and those that undo them, are this part's.
  void enter(LayerPart part) { part_ = part; }

  // Kernels and tensors from here on have names that begin so, as have those that undo them: a second part of
  // its kind stands in the block.
  void begin_names(std::string prefix) { prefix_ = std::move(prefix); }

  // Nobody timed the kernels from here on, nor those that undo them.
  void unmeasured(bool are) { unmeasured_ = are; }

  void forward(Kernel kernel);
  void host_waits();                           // for the forward kernel just written
  void finds_maximum();                        // the forward kernel just written, of its output
  TensorId maximum_of(TensorId tensor) const;  // -1: no kernel found it
  void backward_input(Kernel kernel);
  void backward_weight(Kernel kernel);

  // `emit` adds the backward kernels of the step just written; finish() calls it.
  void undo(std::function<void()> emit);

  // For use inside undo():
  TensorId gradient_of(TensorId tensor);   // what the tensor's readers made, summed
  TensorId new_gradient(TensorId tensor);  // to be written by this step, one of its readers
  TensorId new_gradient(TensorId tensor, double element_bytes);
  TensorId gradient_like(TensorId tensor);       // new_gradient() in the tensor's own precision
  TensorId partial_gradient(TensorId tensor);    // of one rank, before its sum over ranks is new_gradient()
  TensorId parameter_gradient(TensorId tensor);  // to be written by this step: accumulated
  TensorId scratch_gradient(std::string name, double elements);  // on the way to a gradient
  TensorId scratch_gradient(std::string name, double elements, double element_bytes);
  // The products of a linear layer's backward pass. With shape().fused_accumulation the weight's is added to
  // its gradient where that is kept in more bytes than the operands, else written.
  Gemm input_gradient(Gemm gemm) const;
  Gemm weight_gradient(Gemm gemm) const;
  void gradient_was_made(TensorId of, TensorId gradient);  // by the forward pass
  void pass_gradient(TensorId from, TensorId to);          // `to` has the gradient of `from`: no kernel

  // The forward kernels from number `first` on run again before the backward pass, and what they make is
  // dropped until then; but `kept` (-1: none) stays from the first run, and the second run writes a copy,
  // whose id is returned.
  TensorId rerun_from(std::size_t first, TensorId kept = -1);

  // The forward kernels run again as Recompute::op has it.
  void rerun_by_op() { reruns_by_op_ = true; }

  // What runs again ends with the last kernel whose outputs the backward pass reads.
  void stop_rerun_early() { stops_early_ = true; }

  void hands_on(TensorId output);  // the next block reads it and returns its gradient
  Block finish(bool joins_previous = false);

  const Tensor& operator[](TensorId id) const { return block_.tensors[static_cast<std::size_t>(id)]; }
  std::size_t forward_kernels() const { return block_.forward.size(); }
  const Shape& shape() const { return shape_; }

 private:
  TensorId add(Tensor tensor);
  TensorId add_gradient(std::string name, TensorId of);
  std::vector<TensorId>& parts_of(TensorId tensor) {
    return gradient_parts_[static_cast<std::size_t>(tensor)];
  }

  struct Undo {
    std::function<void()> emit;
    LayerPart part = LayerPart::none;
    bool unmeasured = false;
    std::string prefix = {};
  };
  std::string prefixed(std::string name) const;

  Block block_;
  LayerPart part_ = LayerPart::none;
  bool unmeasured_ = false;
  TensorUse use_ = TensorUse::other;
  std::string prefix_;
  bool reruns_by_op_ = false;
  bool stops_early_ = false;
  Shape shape_;
  std::vector<Undo> undo_;
  std::map<TensorId, TensorId> maxima_;                // by tensor
  std::vector<std::vector<TensorId>> gradient_parts_;  // by tensor: what its readers contributed so far
};

}  // namespace rehearse
