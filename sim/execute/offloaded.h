// What of a microbatch's activations on a stage is at the host, or on its way there or back?
#pragma once

#include <vector>

#include "execute/pieces.h"
#include "execute/pool.h"

namespace rehearse {

// Memory that a copy reads or writes stays until an op that waits for the copy is issued: what that op's
// stream does afterwards may have it.
class Offloaded {
 public:
  bool empty() const { return matrices_.empty(); }

  // OFFLOAD: all that `held` has but what the loss keeps, which is what the pieces hold no longer.
  void leave(std::vector<Held>& held, const std::vector<Piece>& pieces, Pool& host, kernels::Stream& stream);
  // An op waits for it.
  void have_left();
  // RELOAD: into memory of `device`.
  void return_to(Pool& device, kernels::Stream& stream);
  // An op waits for it: held again.
  void have_returned(std::vector<Held>& held);

 private:
  struct Matrix {
    std::size_t piece = 0, matrix = 0, bytes = 0;
    Memory left, at_host, returned;
  };
  std::vector<Matrix> matrices_;
};

}  // namespace rehearse
