#include <algorithm>
#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

float log_sum_of_exponentials(const float* logits, std::int64_t columns) {
  float largest = logits[0], sum = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t c = 0; c < columns; ++c) largest = std::max(largest, logits[c]);
#pragma omp simd reduction(+ : sum)
  for (std::int64_t c = 0; c < columns; ++c) sum += exponential(logits[c] - largest);
  return largest + std::log(sum);
}

}  // namespace

void run(const LogSoftmax& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    const float log_sum = log_sum_of_exponentials(logits, call.logits.columns);
    float* out = row(call.log_probabilities, r);
    for (std::int64_t c = 0; c < call.logits.columns; ++c) out[c] = logits[c] - log_sum;
    data(call.loss)[r] = -out[labels[r]];
  });
}

void run(const LikelihoodBackward& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.gradient.rows, [&](std::int64_t r) {
    float* out = row(call.gradient, r);
    std::fill_n(out, call.gradient.columns, 0.0F);
    out[labels[r]] = -call.scale;
  });
}

void run(const LogSoftmaxBackward& call) {
  for_each(call.gradient.rows, [&](std::int64_t r) {
    const float *gradient = row(call.gradient, r), *log_probabilities = row(call.log_probabilities, r);
    float* out = row(call.logit_gradient, r);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < call.gradient.columns; ++c) sum += gradient[c];
    for (std::int64_t c = 0; c < call.gradient.columns; ++c)
      out[c] = gradient[c] - sum * exponential(log_probabilities[c]);
  });
}

void run(const TokenLoss& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    const float log_sum = log_sum_of_exponentials(logits, call.logits.columns);
    data(call.log_sum)[r] = log_sum;
    data(call.loss)[r] = log_sum - logits[labels[r]];
  });
}

void run(const TokenLossBackward& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    const float log_sum = data(call.log_sum)[r];
    float* out = row(call.logit_gradient, r);
    for (std::int64_t c = 0; c < call.logits.columns; ++c)
      out[c] = call.scale * exponential(logits[c] - log_sum);
    out[labels[r]] -= call.scale;
  });
}

}  // namespace rehearse::kernels::cpu
