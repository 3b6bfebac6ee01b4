// Which activations of a microbatch on a stage are at the host, or on their way there or back?
#pragma once

#include <vector>

#include "execute/pieces.h"
#include "execute/pool.h"

namespace rehearse {

// Memory that a copy reads or writes stays until an op that waits for the copy is issued. Later work of that
// op's stream may reuse it.
class Offloaded {
 public:
  bool empty() const { return matrices_.empty(); }

  // OFFLOAD: takes all matrices of `held` except those of the loss.
  void leave(std::vector<Held>& held, const std::vector<Piece>& pieces, Pool& host, kernels::Stream& stream);
  // Called when an op waits for the OFFLOAD.
  void have_left();
  // RELOAD: copies into memory of `device`.
  void return_to(Pool& device, kernels::Stream& stream);
  // Called when an op waits for the RELOAD: matrices are held again.
  void have_returned(std::vector<Held>& held);

 private:
  struct Matrix {
    std::size_t piece = 0, matrix = 0, bytes = 0;
    Memory left, at_host, returned;
  };
  std::vector<Matrix> matrices_;
};

}  // namespace rehearse
