// How is a block built? Its forward kernels come in order, and each step has a function that adds the
// backward kernels. finish() calls these functions last to first, as automatic differentiation does. It sums
// the gradients of a tensor that several kernels read.
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
  BlockBuilder(std::string name, const Shape& shape, BlockRole role);

  TensorId input(std::string name, double elements);
  TensorId batch(std::string name, double elements);  // 64-bit token ids
  TensorId batch(std::string name, double elements, double element_bytes);
  TensorId activation(std::string name, double elements);
  TensorId activation(std::string name, double elements, double element_bytes);
  TensorId parameter(std::string name, double elements, std::int16_t matrices = 1);
  TensorId expert_parameter(std::string name, double elements);  // a parameter of routed experts
  TensorId tied_parameter(std::string name, double elements);
  void share_out(TensorId parameter, RankShare share);  // `parameter` -1: no parameter
  void mark(TensorId tensor, TensorUse use);
  void freezes(bool does) { freezes_ = does; }         // parameters from here on are not trained
  void no_input_gradient() { trains_input_ = false; }  // nothing before this block is trained
  void parameters_are(TensorUse use) { use_ = use; }   // parameters from here on

  // The kernels from here on, and their backward kernels, belong to this part.
  void enter(LayerPart part) { part_ = part; }

  // Prefix for the names of kernels and tensors from here on, and of their backward kernels. A second part of
  // the same kind in a block needs it.
  void begin_names(std::string prefix) { prefix_ = std::move(prefix); }

  // Kernels from here on, and their backward kernels, were never timed.
  void unmeasured(bool are) { unmeasured_ = are; }

  void forward(Kernel kernel);
  void host_waits();                           // for the last forward kernel
  void finds_maximum();                        // the last forward kernel finds the maximum of its output
  TensorId maximum_of(TensorId tensor) const;  // -1: no kernel finds it
  void backward_input(Kernel kernel);
  void backward_weight(Kernel kernel);

  // `emit` adds the backward kernels of the last step; finish() calls it.
  void undo(std::function<void()> emit);

  // For use inside undo():
  TensorId gradient_of(TensorId tensor);   // sum of the gradients that the tensor's readers made
  TensorId new_gradient(TensorId tensor);  // a gradient that this step writes, as one reader of the tensor
  TensorId new_gradient(TensorId tensor, double element_bytes);
  TensorId gradient_like(TensorId tensor);       // new_gradient() in the tensor's own precision
  TensorId partial_gradient(TensorId tensor);    // gradient on one rank; its sum over ranks is new_gradient()
  TensorId parameter_gradient(TensorId tensor);  // this step writes it: accumulated
  // An intermediate tensor on the way to a gradient.
  TensorId scratch_gradient(std::string name, double elements);
  TensorId scratch_gradient(std::string name, double elements, double element_bytes);
  // The GEMMs of a linear layer's backward pass. With shape().fused_accumulation, the weight's GEMM adds to
  // the stored gradient if that has more bytes than the operands. Otherwise it writes the gradient.
  Gemm input_gradient(Gemm gemm) const;
  Gemm weight_gradient(Gemm gemm) const;
  void gradient_was_made(TensorId of, TensorId gradient);  // by a kernel of the forward pass
  void pass_gradient(TensorId from, TensorId to);  // `to` has the gradient of `from`, without a kernel

  // Recomputes the forward kernels from number `first` on before the backward pass, and drops their outputs
  // until then. `kept` (-1: none) stays from the first run; the second run writes a copy, whose id is
  // returned.
  TensorId rerun_from(std::size_t first, TensorId kept = -1);

  // Recompute::op chooses the forward kernels to recompute.
  void rerun_by_op() { reruns_by_op_ = true; }

  // Recompute ends with the last kernel whose outputs the backward pass reads.
  void stop_rerun_early() { stops_early_ = true; }

  void hands_on(TensorId output);  // the next block reads `output` and returns its gradient
  Block finish(bool joins_previous = false);

  const Tensor& operator[](TensorId id) const { return block_.tensors[static_cast<std::size_t>(id)]; }
  std::size_t forward_kernels() const { return block_.forward.size(); }
  const Shape& shape() const { return shape_; }

 private:
  TensorId add(Tensor tensor);
  TensorId add_gradient(std::string name, TensorId of);
  void drop_unneeded();
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
  bool freezes_ = false, trains_input_ = true;
  std::vector<TensorId> trained_gradients_;  // of parameters
  Shape shape_;
  std::vector<Undo> undo_;
  std::map<TensorId, TensorId> maxima_;                // by tensor: its maximum
  std::vector<std::vector<TensorId>> gradient_parts_;  // by tensor: gradients from its readers so far
};

}  // namespace rehearse
