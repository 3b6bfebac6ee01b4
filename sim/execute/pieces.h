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

// What a microbatch holds of a block, by matrix.
using Held = std::vector<Memory>;

// One layer, the embedding, the head, or the module that predicts a MTP layer, counted as a layer.
struct Piece {
  const Block* block = nullptr;
  std::string name;          // "embedding", "layers.3", "mtp", "head"
  std::int64_t layer = 0;    // -1: no layer
  bool reads_ahead = false;  // tokens and labels of one place further on
  // The first of those whose inputs the backward pass of this one makes again first, one from the other, as
  // only that one's was kept; itself where it runs again alone or not at all.
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

// What unit `unit` of `units` consists of, in model order. Of as many units as there are layers, the first
// has the embedding too and the last the head (plan/units.h); others have about as many pieces each.
Range range_of_unit(const std::vector<Piece>& pieces, int unit, int units);

// Adds the parameters of a stage that is gathered or reduced in `units` units. Returns by piece and tensor
// the parameter that a tensor is or is the gradient of; -1: neither.
struct ParameterOf {
  std::int64_t value = -1, gradient = -1;  // index in Parameters
};
std::vector<std::vector<ParameterOf>> add_parameters(const Training& training, int stage,
                                                     const std::vector<Piece>& pieces, int units, int rank,
                                                     Parameters& parameters);

}  // namespace rehearse
