#include <algorithm>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/blas.h"

namespace rehearse::kernels::cpu {

HeadView head_view(const Tensor& tensor, const Tokens& tokens, std::int64_t sequence, std::int64_t head,
                   std::int64_t width) {
  const Places places = places_of(tokens, sequence);
  return {row(tensor, places.first) + head * width, places.step * tensor.stride};
}

std::vector<Tile> tiles_of(const Tokens& tokens) {
  std::vector<Tile> tiles;
  for (std::int64_t first = 0; first < tokens.length; first += kTile) {
    Tile tile{first, std::min(first + kTile, tokens.length)};
    tile.low = tile.high = position_of_place(tokens, first);
    for (std::int64_t place = first; place < tile.last; ++place) {
      const std::int64_t position = position_of_place(tokens, place);
      tile.low = std::min(tile.low, position);
      tile.high = std::max(tile.high, position);
    }
    tiles.push_back(tile);
  }
  return tiles;
}

Sight sight(const AttentionShape& shape, const Tile& queries, const Tile& keys) {
  const bool after = shape.causal && keys.low > queries.high;
  const bool before = shape.window > 0 && keys.high <= queries.low - shape.window;
  if (after || before) return Sight::none;
  const bool none_after = !shape.causal || keys.high <= queries.low;
  const bool none_before = shape.window == 0 || keys.low > queries.high - shape.window;
  return none_after && none_before ? Sight::all : Sight::some;
}

bool sees(const AttentionShape& shape, std::int64_t query_position, std::int64_t key_position) {
  if (shape.causal && key_position > query_position) return false;
  return shape.window == 0 || key_position > query_position - shape.window;
}

void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, float scale, MatrixView a,
                         MatrixView b, float* c, std::int64_t step) {
  sgemm(m, n, k, scale, {a.data, a.step, false}, {b.data, b.step, true}, 0, c, step);
}

void add_product(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c,
                 std::int64_t step) {
  sgemm(m, n, k, 1, {a.data, a.step, false}, {b.data, b.step, false}, 1, c, step);
}

void add_transposed_product(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                            float* c, std::int64_t step) {
  sgemm(m, n, k, 1, {a.data, a.step, true}, {b.data, b.step, false}, 1, c, step);
}

}  // namespace rehearse::kernels::cpu
