#include <algorithm>
#include <cmath>

#include "kernels/cpu/access.h"
#include "kernels/cpu/exponential.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

void run(const LossMaximum& call) {
  float* maximum = data(call.maximum);
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    float largest = logits[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t c = 0; c < call.logits.columns; ++c) largest = std::max(largest, logits[c]);
    maximum[r] = largest;
  });
}

void run(const LossShift& call) {
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    const float maximum = data(call.maximum)[r];
    float* out = row(call.shifted, r);
    for (std::int64_t c = 0; c < call.logits.columns; ++c) out[c] = logits[c] - maximum;
  });
}

void run(const LossSum& call) {
  for_each(call.exponentials.rows, [&](std::int64_t r) {
    const float* exponentials = row(call.exponentials, r);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < call.exponentials.columns; ++c) sum += exponentials[c];
    data(call.sum)[r] = sum;
  });
}

void run(const LossExponentials& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.logits.rows, [&](std::int64_t r) {
    const float* logits = row(call.logits, r);
    const float maximum = call.maximum.given() ? data(call.maximum)[r] : 0.0F;
    float* out = row(call.exponentials, r);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t c = 0; c < call.logits.columns; ++c) {
      out[c] = exponential(logits[c] - maximum);
      sum += out[c];
    }
    const std::int64_t label = labels[r] - call.first;
    const bool here = label >= 0 && label < call.logits.columns;
    data(call.target)[r] = here ? logits[label] - maximum : 0.0F;
    if (call.sum.given()) data(call.sum)[r] = sum;
  });
}

void run(const Loss& call) {
  for_each(call.exponentials.rows, [&](std::int64_t r) {
    const float* exponentials = row(call.exponentials, r);
    const float sum = data(call.sum)[r];
    const float share = 1.0F / sum;
    float* out = row(call.probabilities, r);
    for (std::int64_t c = 0; c < call.exponentials.columns; ++c) out[c] = exponentials[c] * share;
    data(call.loss)[r] = std::log(sum) - data(call.target)[r];
  });
}

void run(const LossBackward& call) {
  const std::int64_t* labels = data<std::int64_t>(call.labels);
  for_each(call.probabilities.rows, [&](std::int64_t r) {
    const float* probabilities = row(call.probabilities, r);
    float* out = row(call.logit_gradient, r);
    for (std::int64_t c = 0; c < call.probabilities.columns; ++c) out[c] = call.scale * probabilities[c];
    const std::int64_t label = labels[r] - call.first;
    if (label >= 0 && label < call.probabilities.columns) out[label] -= call.scale;
  });
}

}  // namespace rehearse::kernels::cpu
