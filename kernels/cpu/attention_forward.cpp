#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/cpu/attention.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

constexpr float kNone = -INFINITY;

// Running maximum and sum of each query's exponentials (Milakov and Gimelshein 2018).
struct Running {
  std::array<float, kTile> maximum;
  std::array<float, kTile> sum;
};

struct OneHead {
  const AttentionShape& shape;
  HeadView query, key, value, output;
};

void hide_unseen(const AttentionShape& shape, const Tile& queries, const Tile& keys, float* scores) {
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    const std::int64_t position = position_of_place(shape.queries, queries.first + i);
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      if (!sees(shape, position, position_of_place(shape.keys, keys.first + j))) {
        scores[i * kTile + j] = kNone;
      }
    }
  }
}

// Replaces a row of scores by exponentials relative to its new maximum; rescales earlier sums.
void take_row(std::int64_t keys, float* scores, float& maximum, float& sum, float* output,
              std::int64_t width) {
  float largest = maximum;
  for (std::int64_t j = 0; j < keys; ++j) largest = std::max(largest, scores[j]);
  if (largest == kNone) {
    std::fill_n(scores, keys, 0.0F);
    return;
  }
  const float keep = maximum == kNone ? 0.0F : exponential(maximum - largest);
  float added = 0;
#pragma omp simd reduction(+ : added)
  for (std::int64_t j = 0; j < keys; ++j) {
    const float e = scores[j] == kNone ? 0.0F : exponential(scores[j] - largest);
    scores[j] = e;
    added += e;
  }
  if (keep != 1.0F) {
    for (std::int64_t c = 0; c < width; ++c) output[c] *= keep;
  }
  sum = sum * keep + added;
  maximum = largest;
}

void attend(const OneHead& head, const Tile& queries, const std::vector<Tile>& keys, Running& running) {
  const AttentionShape& shape = head.shape;
  alignas(64) std::array<float, kTile * kTile> scores;
  running.maximum.fill(kNone);
  running.sum.fill(0);
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    std::fill_n(head.output.place(queries.first + i), shape.v_head_dim, 0.0F);
  }
  for (const Tile& tile : keys) {
    const Sight seen = sight(shape, queries, tile);
    if (seen == Sight::none) continue;
    multiply_transposed(queries.size(), tile.size(), shape.head_dim, shape.scale,
                        {head.query.place(queries.first), head.query.step},
                        {head.key.place(tile.first), head.key.step}, scores.data(), kTile);
    if (seen == Sight::some) hide_unseen(shape, queries, tile, scores.data());
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      take_row(tile.size(), &scores[at * kTile], running.maximum[at], running.sum[at],
               head.output.place(queries.first + i), shape.v_head_dim);
    }
    add_product(queries.size(), shape.v_head_dim, tile.size(), {scores.data(), kTile},
                {head.value.place(tile.first), head.value.step}, head.output.place(queries.first),
                head.output.step);
  }
}

}  // namespace

void run(const AttentionForward& call) {
  const AttentionShape& shape = call.shape;
  const std::vector<Tile> queries = tiles_of(shape.queries), keys = tiles_of(shape.keys);
  const auto blocks = static_cast<std::int64_t>(queries.size());
  const std::int64_t group = shape.heads / shape.kv_heads;
  for_each(shape.queries.sequences * shape.heads * blocks, [&](std::int64_t unit) {
    const std::int64_t sequence = unit / blocks / shape.heads, h = unit / blocks % shape.heads;
    const Tile& tile = queries[static_cast<std::size_t>(unit % blocks)];
    const OneHead head{shape, head_view(call.query, shape.queries, sequence, h, shape.head_dim),
                       head_view(call.key, shape.keys, sequence, h / group, shape.head_dim),
                       head_view(call.value, shape.keys, sequence, h / group, shape.v_head_dim),
                       head_view(call.output, shape.queries, sequence, h, shape.v_head_dim)};
    const HeadView log_sum_exp = head_view(call.log_sum_exp, shape.queries, sequence, h, 1);
    Running running;
    attend(head, tile, keys, running);
    for (std::int64_t i = 0; i < tile.size(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float sum = running.sum[at];
      float* output = head.output.place(tile.first + i);
      for (std::int64_t c = 0; sum > 0 && c < shape.v_head_dim; ++c) output[c] /= sum;
      *log_sum_exp.place(tile.first + i) = sum > 0 ? running.maximum[at] + std::log(sum) : kNone;
    }
  });
}

void run(const AttentionMerge& call) {
  const std::int64_t width = call.output.columns / call.heads;
  for_each(call.output.rows, [&](std::int64_t r) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      float& total = row(call.log_sum_exp, r)[h];
      const float part = row(call.part_log_sum_exp, r)[h];
      const float largest = std::max(total, part);
      if (part == kNone) continue;
      const float old_share = total == kNone ? 0.0F : std::exp(total - largest);
      const float new_share = std::exp(part - largest);
      const float sum = old_share + new_share;
      float* output = row(call.output, r) + h * width;
      const float* more = row(call.part, r) + h * width;
      for (std::int64_t c = 0; c < width; ++c) {
        output[c] = (old_share > 0 ? old_share * output[c] : 0.0F) / sum + new_share / sum * more[c];
      }
      total = largest + std::log(sum);
    }
  });
}

}  // namespace rehearse::kernels::cpu
