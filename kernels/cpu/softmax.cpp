#include <algorithm>

#include "kernels/cpu/access.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

void run(const Softmax& call) {
  for_each(call.scores.rows, [&](std::int64_t r) {
    const std::int64_t columns = call.scores.columns;
    const std::int64_t seen = call.causal ? std::min(columns, r % call.period / call.repeat + 1) : columns;
    const float* scores = row(call.scores, r);
    float* out = row(call.probabilities, r);
    float largest = scores[0];
    for (std::int64_t j = 1; j < seen; ++j) largest = std::max(largest, scores[j]);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < seen; ++j) {
      out[j] = exponential(call.scale * (scores[j] - largest));
      sum += out[j];
    }
    for (std::int64_t j = 0; j < seen; ++j) out[j] /= sum;
    std::fill(out + seen, out + columns, 0.0F);
  });
}

void run(const SoftmaxBackward& call) {
  for_each(call.probabilities.rows, [&](std::int64_t r) {
    const float* p = row(call.probabilities, r);
    const float* gradient = row(call.probability_gradient, r);
    float* out = row(call.score_gradient, r);
    float dot = 0;
#pragma omp simd reduction(+ : dot)
    for (std::int64_t j = 0; j < call.probabilities.columns; ++j) dot += p[j] * gradient[j];
    for (std::int64_t j = 0; j < call.probabilities.columns; ++j) {
      out[j] = call.scale * p[j] * (gradient[j] - dot);
    }
  });
}

}  // namespace rehearse::kernels::cpu
