// Which blocks does a stage consist of on one rank, and where in memory does each of them find its tensors?
#pragma once

#include <string>
#include <vector>

#include "execute/parameters.h"
#include "execute/passes.h"
#include "execute/pool.h"
#include "execute/training.h"
#include "launch/calls.h"

namespace rehearse {

// Memory of a block's matrices in one microbatch, by matrix.
using Held = std::vector<Memory>;

// One layer, the embedding, the head, or an MTP layer, which counts as a layer.
struct Piece {
  const Block* block = nullptr;
  std::string name;          // "embedding", "layers.3", "mtp", "head"
  std::int64_t layer = 0;    // -1: no layer
  bool reads_ahead = false;  // tokens and labels of the next place
  // First piece of the group that the backward pass of this piece recomputes beforehand. Only that piece's
  // input was kept, so each recompute gives the next one's input. The piece's own index where it is
  // recomputed alone or not at all.
  std::size_t runs_again_from = 0;
  BlockPasses passes;
  std::vector<TensorPlace> places;  // by tensor
  std::vector<void*> fixed;         // by tensor: parameters, their gradients, batch and loss; else nullptr
  std::vector<bool> of_loss;        // by matrix: never offloaded

  TensorId find(const std::string& tensor) const;  // -1: none
  std::size_t matrix(TensorId id) const {
    return static_cast<std::size_t>(places[static_cast<std::size_t>(id)].matrix);
  }
};

// In model order.
std::vector<Piece> make_pieces(const Training& training, int stage);

// Pieces from first to before last.
struct Range {
  std::size_t first = 0, last = 0;
};

// Pieces of unit `unit` of `units`, in model order. If there are as many units as layers, the first unit also
// has the embedding and the last one the head (plan/units.h). Otherwise each unit has about the same number
// of pieces.
Range range_of_unit(const std::vector<Piece>& pieces, int unit, int units);

// Adds the parameters of a stage that is gathered or reduced in `units` units. Returns, by piece and tensor,
// the parameter that a tensor is, or is the gradient of; -1: neither.
struct ParameterOf {
  std::int64_t value = -1, gradient = -1;  // index in Parameters
};
std::vector<std::vector<ParameterOf>> add_parameters(const Training& training, int stage,
                                                     const std::vector<Piece>& pieces, int units, int rank,
                                                     Parameters& parameters);

}  // namespace rehearse
