// When do the activations of a block come to life and die while its kernels are launched?
//
// A tensor comes when a kernel writes it and goes after the last kernel that reads it, as PyTorch's autograd
// frees it. In op B each weight gradient follows the input gradient of its step. Gradients of parameters lie
// in the accumulator, all-reduces work in place.
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

// What happens to the tensors of a block as one of its ops runs, in order. What is there before it, and stays
// after it, makes no event: what is saved between F and B or I, what is kept between I and W.
struct BlockEvents {
  TensorEvents forward;          // from the input on; the output stays
  TensorEvents backward;         // with the recompute, to the input's gradient
  TensorEvents backward_input;   // the same of op I
  TensorEvents backward_weight;  // of op W
  TensorEvents recompute = {};   // alone: of a block that is recomputed together with the next one
  TensorEvents backward_of_recomputed = {};        // and what follows it, in op B
  TensorEvents backward_input_of_recomputed = {};  // in op I
};

// Tensors of a block that are there at some moment, by TensorId.
using Marks = std::vector<bool>;

struct WalkOptions {
  bool of_parameters = false;  // the gradients of parameters come too, and stay
  // Launches of a collective that share the queue of the compute kernels. It runs on a stream of its own,
  // which waits for an event of theirs and is waited for (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
  // syncStreams).
  std::int32_t collective = 2;
};

class BlockWalk {
 public:
  explicit BlockWalk(const Block& block, const WalkOptions& options = {});

  // Tensors that are allocated as activations: not parameters nor what the data loader holds.
  const Marks& counted() const { return counted_; }

  Marks input() const { return marked({block_.input}); }
  Marks saved() const { return marked(block_.saved); }
  Marks before_recompute() const;  // saved, and what the block before makes anew
  Marks again() const;             // what the backward reads once the recompute has run
  Marks kept() const { return read_before_written(block_.backward_weight); }
  Marks and_output_gradient(Marks marks) const;
  // `in_groups`: some block joins another, so that recomputes may run alone; else those lists are empty.
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

// Whether some of its blocks are recomputed together.
bool recomputes_in_groups(const Work& work);

}  // namespace rehearse
