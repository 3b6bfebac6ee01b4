// Shared by forward and backward attention: tiles of queries and keys, and which queries see which keys.
#pragma once

#include <vector>

#include "kernels/call/attention.h"
#include "kernels/cpu/access.h"

namespace rehearse::kernels::cpu {

constexpr std::int64_t kTile = 64;  // queries or keys

// Columns of one head in the rows of one sequence: element (place, column) at first + place * step + column.
struct HeadView {
  float* first = nullptr;
  std::int64_t step = 0;
  float* place(std::int64_t index) const { return first + index * step; }
};
HeadView head_view(const Tensor& tensor, const Tokens& tokens, std::int64_t sequence, std::int64_t head,
                   std::int64_t width);

// Places first .. last of a sequence, with the smallest and largest position among them.
struct Tile {
  std::int64_t first = 0, last = 0;
  std::int64_t low = 0, high = 0;
  std::int64_t size() const { return last - first; }
};
std::vector<Tile> tiles_of(const Tokens& tokens);

enum class Sight : std::uint8_t { none, some, all };
Sight sight(const AttentionShape& shape, const Tile& queries, const Tile& keys);
bool sees(const AttentionShape& shape, std::int64_t query_position, std::int64_t key_position);

// c = scale a b^T, c = beta c + a b, c = beta c + a^T b, on row-major tiles.
struct MatrixView {
  const float* data = nullptr;
  std::int64_t step = 0;
};
void multiply_transposed(std::int64_t m, std::int64_t n, std::int64_t k, float scale, MatrixView a,
                         MatrixView b, float* c, std::int64_t step);
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b, float* c,
                 std::int64_t step);
void add_transposed_product(std::int64_t m, std::int64_t n, std::int64_t k, MatrixView a, MatrixView b,
                            float* c, std::int64_t step);

}  // namespace rehearse::kernels::cpu
