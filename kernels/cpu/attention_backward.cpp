#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

using Scores = std::array<float, kTile * kTile>;

// Dao et al. 2022, algorithm 4, for one query head.
struct OneHead {
  const AttentionShape& shape;
  HeadView output_gradient, query, key, value, output, log_sum_exp;
  HeadView query_gradient, key_gradient, value_gradient;
};

void clear(const HeadView& view, std::int64_t places, std::int64_t width) {
  for (std::int64_t place = 0; place < places; ++place) std::fill_n(view.place(place), width, 0.0F);
}

// probabilities = exp(score - log_sum_exp) where the query sees the key.
void probabilities(const OneHead& head, const Tile& queries, const Tile& keys, Scores& scores) {
  const AttentionShape& shape = head.shape;
  const bool partly = sight(shape, queries, keys) == Sight::some;
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    const std::int64_t position = position_of_place(shape.queries, queries.first + i);
    const float sum = *head.log_sum_exp.place(queries.first + i);
    float* p = &scores[static_cast<std::size_t>(i * kTile)];
    if (sum == -INFINITY) {
      std::fill_n(p, keys.size(), 0.0F);
      continue;
    }
#pragma omp simd
    for (std::int64_t j = 0; j < keys.size(); ++j) p[j] = exponential(p[j] - sum);
    for (std::int64_t j = 0; partly && j < keys.size(); ++j) {
      if (!sees(shape, position, position_of_place(shape.keys, keys.first + j))) p[j] = 0;
    }
  }
}

// gradient of scores = scale p (gradient of p - sum over the row of output times its gradient). It overwrites
// the gradient of p.
void score_gradients(const OneHead& head, const Tile& queries, const Tile& keys, const Scores& p, Scores& g) {
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    const float* output = head.output.place(queries.first + i);
    const float* gradient = head.output_gradient.place(queries.first + i);
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t c = 0; c < head.shape.v_head_dim; ++c) dot += output[c] * gradient[c];
    const auto first = static_cast<std::size_t>(i * kTile);
    for (std::size_t j = first; j < first + static_cast<std::size_t>(keys.size()); ++j) {
      g[j] = p[j] * (g[j] - dot) * head.shape.scale;
    }
  }
}

void one_tile(const OneHead& head, const Tile& queries, const Tile& keys) {
  const AttentionShape& shape = head.shape;
  alignas(64) Scores p, g;
  const MatrixView query{head.query.place(queries.first), head.query.step};
  const MatrixView key{head.key.place(keys.first), head.key.step};
  const MatrixView value{head.value.place(keys.first), head.value.step};
  const MatrixView gradient{head.output_gradient.place(queries.first), head.output_gradient.step};
  const std::int64_t rows = queries.size(), columns = keys.size();

  multiply_transposed(rows, columns, shape.head_dim, shape.scale, query, key, p.data(), kTile);
  probabilities(head, queries, keys, p);
  add_transposed_product(columns, shape.v_head_dim, rows, {p.data(), kTile}, gradient,
                         head.value_gradient.place(keys.first), head.value_gradient.step);
  multiply_transposed(rows, columns, shape.v_head_dim, 1, gradient, value, g.data(), kTile);
  score_gradients(head, queries, keys, p, g);
  add_product(rows, shape.head_dim, columns, {g.data(), kTile}, key, head.query_gradient.place(queries.first),
              head.query_gradient.step);
  add_transposed_product(columns, shape.head_dim, rows, {g.data(), kTile}, query,
                         head.key_gradient.place(keys.first), head.key_gradient.step);
}

}  // namespace

// One thread handles all query heads of a key head in turn, as their key and value gradients add up.
void run(const AttentionBackward& call) {
  const AttentionShape& shape = call.shape;
  const std::vector<Tile> queries = tiles_of(shape.queries), keys = tiles_of(shape.keys);
  const std::int64_t group = shape.heads / shape.kv_heads;
  for_each(shape.queries.sequences * shape.kv_heads, [&](std::int64_t unit) {
    const std::int64_t sequence = unit / shape.kv_heads, shared = unit % shape.kv_heads;
    const auto of_query = [&](const Tensor& tensor, std::int64_t h, std::int64_t width) {
      return head_view(tensor, shape.queries, sequence, h, width);
    };
    const auto of_key = [&](const Tensor& tensor, std::int64_t width) {
      return head_view(tensor, shape.keys, sequence, shared, width);
    };
    const HeadView key_gradient = of_key(call.key_gradient, shape.head_dim);
    const HeadView value_gradient = of_key(call.value_gradient, shape.v_head_dim);
    clear(key_gradient, shape.keys.length, shape.head_dim);
    clear(value_gradient, shape.keys.length, shape.v_head_dim);
    for (std::int64_t h = shared * group; h < (shared + 1) * group; ++h) {
      const OneHead head{shape,
                         of_query(call.output_gradient, h, shape.v_head_dim),
                         of_query(call.query, h, shape.head_dim),
                         of_key(call.key, shape.head_dim),
                         of_key(call.value, shape.v_head_dim),
                         of_query(call.output, h, shape.v_head_dim),
                         of_query(call.log_sum_exp, h, 1),
                         of_query(call.query_gradient, h, shape.head_dim),
                         key_gradient,
                         value_gradient};
      clear(head.query_gradient, shape.queries.length, shape.head_dim);
      for (const Tile& rows : queries) {
        for (const Tile& columns : keys) {
          if (sight(shape, rows, columns) != Sight::none) one_tile(head, rows, columns);
        }
      }
    }
  });
}

}  // namespace rehearse::kernels::cpu
