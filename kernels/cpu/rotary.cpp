// Rotary positions, of whole heads or of the rotated parts of latent attention.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

enum class Direction : std::int8_t { there = 1, back = -1 };

// The rotation of pairs (i, i + width / 2) of `width` elements at one place of a sequence.
class Turn {
 public:
  Turn(std::int64_t width, float base) {
    for (std::int64_t i = 0; i < width / 2; ++i)
      frequencies_.push_back(
          std::pow(static_cast<double>(base), -2.0 * static_cast<double>(i) / static_cast<double>(width)));
    cosines_.resize(frequencies_.size());
    sines_.resize(frequencies_.size());
  }

  void stand_at(double position) {
    for (std::size_t i = 0; i < frequencies_.size(); ++i) {
      cosines_[i] = static_cast<float>(std::cos(position * frequencies_[i]));
      sines_[i] = static_cast<float>(std::sin(position * frequencies_[i]));
    }
  }

  // In place is allowed.
  void operator()(const float* in, float* out, Direction way) const {
    const auto half = static_cast<std::int64_t>(frequencies_.size());
    const float *cosines = cosines_.data(), *sines = sines_.data();
    const auto sign = static_cast<float>(way);
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = in[i], b = in[half + i], s = sign * sines[i];
      out[i] = a * cosines[i] - b * s;
      out[half + i] = b * cosines[i] + a * s;
    }
  }

 private:
  std::vector<double> frequencies_;
  std::vector<float> cosines_, sines_;
};

// visit(row, turn) for every token. Angles are computed once a place, for all rows and heads there.
template <typename Visit>
void for_each_turn(const Tokens& tokens, const Turn& of, const Visit& visit) {
  for_stretches(tokens.length, 1, [&](std::int64_t first, std::int64_t last) {
    Turn turn = of;
    for (std::int64_t place = first; place < last; ++place) {
      turn.stand_at(static_cast<double>(position_of_place(tokens, place)));
      for (std::int64_t sequence = 0; sequence < tokens.sequences; ++sequence) {
        const Places places = places_of(tokens, sequence);
        visit(places.first + place * places.step, turn);
      }
    }
  });
}

}  // namespace

void run(const Rotary& call) {
  const std::int64_t width = call.query.columns / call.heads;
  const Direction way = call.back ? Direction::back : Direction::there;
  for_each_turn(call.tokens, Turn(width, call.base), [&](std::int64_t r, const Turn& turn) {
    for (std::int64_t h = 0; h < call.heads; ++h)
      turn(row(call.query, r) + h * width, row(call.query_output, r) + h * width, way);
    for (std::int64_t h = 0; h < call.kv_heads; ++h)
      turn(row(call.key, r) + h * width, row(call.key_output, r) + h * width, way);
  });
}

void run(const LatentRotary& call) {
  const LatentHeads& of = call.heads;
  const std::int64_t width = of.own + of.turned;
  for_each_turn(of.tokens, Turn(of.turned, of.base), [&](std::int64_t r, const Turn& turn) {
    for (std::int64_t h = 0; h < of.heads; ++h) {
      const float* query = row(call.query, r) + h * width;
      const float* pair = row(call.keys_and_values, r) + h * (of.own + of.value);
      float* query_output = row(call.query_output, r) + h * width;
      float* key_output = row(call.key_output, r) + h * width;
      std::copy_n(query, of.own, query_output);
      turn(query + of.own, query_output + of.own, Direction::there);
      std::copy_n(pair, of.own, key_output);
      turn(row(call.shared_key, r), key_output + of.own, Direction::there);
      std::copy_n(pair + of.own, of.value, row(call.value_output, r) + h * of.value);
    }
  });
}

void run(const LatentRotaryBackward& call) {
  const LatentHeads& of = call.heads;
  const std::int64_t width = of.own + of.turned;
  for_each_turn(of.tokens, Turn(of.turned, of.base), [&](std::int64_t r, const Turn& turn) {
    float* shared = row(call.shared_key_gradient, r);
    std::fill_n(shared, of.turned, 0.0F);
    for (std::int64_t h = 0; h < of.heads; ++h) {
      const float* of_query = row(call.query_output_gradient, r) + h * width;
      const float* of_key = row(call.key_output_gradient, r) + h * width;
      float* query = row(call.query_gradient, r) + h * width;
      float* pair = row(call.keys_and_values_gradient, r) + h * (of.own + of.value);
      std::copy_n(of_query, of.own, query);
      turn(of_query + of.own, query + of.own, Direction::back);
      std::copy_n(of_key, of.own, pair);
      std::copy_n(row(call.value_output_gradient, r) + h * of.value, of.value, pair + of.own);
      for (std::int64_t i = 0; i < of.turned; ++i) shared[i] += of_key[of.own + i];
    }
    turn(shared, shared, Direction::back);
  });
}

}  // namespace rehearse::kernels::cpu
