// When are the activations of a block allocated and released while its kernels are launched?
//
// A tensor is allocated when a kernel writes it. It is released after the last kernel that reads it, as in
// PyTorch's autograd. In op B each weight gradient follows the input gradient of its step. Gradients of
// parameters lie in the accumulator. All-reduces work in place.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/work.h"

namespace rehearse {

enum class TensorChange : std::uint8_t {
  comes,
  exchanged,  // a collective on a stream of its own reads or writes it
  goes,
};

struct TensorEvent {
  TensorId tensor = -1;
  TensorChange change = TensorChange::comes;
  std::int32_t launches = 0;  // of the op on its stream until then, this kernel's included
  bool operator==(const TensorEvent&) const = default;
};
using TensorEvents = std::vector<TensorEvent>;

// Changes of a block's tensors while one of its ops runs, in order. Tensors that exist before the op and stay
// after it make no event: saved ones between F and B or I, kept ones between I and W.
struct BlockEvents {
  TensorEvents forward;          // from the input on; the output stays
  TensorEvents backward;         // with the recompute, to the input's gradient
  TensorEvents backward_input;   // the same of op I
  TensorEvents backward_weight;  // of op W
  TensorEvents recompute = {};   // alone: of a block that is recomputed together with the next one
  TensorEvents backward_of_recomputed = {};        // of op B after that recompute
  TensorEvents backward_input_of_recomputed = {};  // of op I after it
};

// Tensors of a block that are there at some moment, by TensorId.
using Marks = std::vector<bool>;

struct WalkOptions {
  bool of_parameters = false;  // the gradients of parameters come too, and stay
  // Launches of a collective in the queue of the compute kernels. The collective runs on a stream of its own,
  // which waits for an event of theirs; later they wait for its event
  // (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, syncStreams).
  std::int32_t collective = 2;
};

class BlockWalk {
 public:
  explicit BlockWalk(const Block& block, const WalkOptions& options = {});

  // Tensors that are allocated as activations: no parameters, and nothing that the data loader holds.
  const Marks& counted() const { return counted_; }

  Marks input() const { return marked({block_.input}); }
  Marks saved() const { return marked(block_.saved); }
  Marks before_recompute() const;  // saved, and the input that the recompute of the block before writes
  Marks again() const;             // tensors that the backward reads and that exist after the recompute
  Marks kept() const { return read_before_written(block_.backward_weight); }
  Marks and_output_gradient(Marks marks) const;
  // `in_groups`: some block joins another, so recomputes may run alone. Otherwise those lists are empty.
  BlockEvents events(bool in_groups) const;

 private:
  using Kernels = std::vector<const Kernel*>;

  Marks marked(const std::vector<TensorId>& ids) const;
  Marks read_before_written(const std::vector<Kernel>& kernels) const;
  Kernels autograd_order() const;
  std::int32_t launches(const Kernel& kernel) const;
  TensorEvents walk(const Kernels& order, const Marks& before, const Marks& after) const;

  const Block& block_;
  std::int32_t collective_launches_;
  Marks counted_, of_parameters_;
};

// Whether some blocks of `work` are recomputed together.
bool recomputes_in_groups(const Work& work);

}  // namespace rehearse
