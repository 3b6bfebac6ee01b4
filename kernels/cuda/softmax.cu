// Row softmax, and the loss over a split vocabulary: one block a row.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

template <typename T>
__global__ void softmax(Rows<T> scores, Rows<T> out, Softmax call) {
  for (std::int64_t r = blockIdx.x; r < scores.rows; r += gridDim.x) {
    const std::int64_t seen =
        call.causal ? min(scores.columns, r % call.period / call.repeat + 1) : scores.columns;
    float largest = -INFINITY, sum = 0;
    for (std::int64_t c = threadIdx.x; c < seen; c += kThreads) largest = fmaxf(largest, scores.load(r, c));
    largest = block_maximum(largest);
    for (std::int64_t c = threadIdx.x; c < seen; c += kThreads) sum += expf(call.scale * (scores.load(r, c) - largest));
    sum = block_sum(sum);
    for (std::int64_t c = threadIdx.x; c < scores.columns; c += kThreads)
      out.store(r, c, c < seen ? expf(call.scale * (scores.load(r, c) - largest)) / sum : 0.0F);
  }
}

template <typename T>
__global__ void softmax_backward(Rows<T> gradient, Rows<T> p, Rows<T> out, float scale) {
  for (std::int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    float dot = 0;
    for (std::int64_t c = threadIdx.x; c < p.columns; c += kThreads) dot += p.load(r, c) * gradient.load(r, c);
    dot = block_sum(dot);
    for (std::int64_t c = threadIdx.x; c < p.columns; c += kThreads)
      out.store(r, c, scale * p.load(r, c) * (gradient.load(r, c) - dot));
  }
}

template <typename T>
__global__ void maximum_of_rows(Rows<T> logits, float* maximum) {
  for (std::int64_t r = blockIdx.x; r < logits.rows; r += gridDim.x) {
    float largest = -INFINITY;
    for (std::int64_t c = threadIdx.x; c < logits.columns; c += kThreads) largest = fmaxf(largest, logits.load(r, c));
    largest = block_maximum(largest);
    if (threadIdx.x == 0) maximum[r] = largest;
  }
}

template <typename T>
__global__ void exponentials(Rows<T> logits, const std::int64_t* labels, const float* maximum, Rows<float> out,
                             float* target, float* total, std::int64_t first) {
  for (std::int64_t r = blockIdx.x; r < logits.rows; r += gridDim.x) {
    const float largest = maximum == nullptr ? 0.0F : maximum[r];
    float sum = 0;
    for (std::int64_t c = threadIdx.x; c < logits.columns; c += kThreads) {
      const float e = expf(logits.load(r, c) - largest);
      out.store(r, c, e);
      sum += e;
    }
    if (total != nullptr) sum = block_sum(sum);
    if (threadIdx.x != 0) continue;
    const std::int64_t label = labels[r] - first;
    target[r] = label >= 0 && label < logits.columns ? logits.load(r, label) - largest : 0.0F;
    if (total != nullptr) total[r] = sum;
  }
}

__global__ void sum_of_rows(Rows<float> in, float* sums) {
  for (std::int64_t r = blockIdx.x; r < in.rows; r += gridDim.x) {
    float sum = 0;
    for (std::int64_t c = threadIdx.x; c < in.columns; c += kThreads) sum += in.load(r, c);
    sum = block_sum(sum);
    if (threadIdx.x == 0) sums[r] = sum;
  }
}

struct Shift {
  Rows<float> in, out;
  const float* by;
  __device__ void operator()(std::int64_t r, std::int64_t c) const { out.store(r, c, in.load(r, c) - by[r]); }
};

__global__ void probabilities(Rows<float> e, const float* target, const float* sum, Rows<float> out, float* loss) {
  for (std::int64_t r = blockIdx.x; r < e.rows; r += gridDim.x) {
    const float share = 1 / sum[r];
    for (std::int64_t c = threadIdx.x; c < e.columns; c += kThreads) out.store(r, c, share * e.load(r, c));
    if (threadIdx.x == 0) loss[r] = logf(sum[r]) - target[r];
  }
}

template <typename T>
__global__ void logit_gradient(Rows<float> p, const std::int64_t* labels, Rows<T> out, std::int64_t first, float scale) {
  for (std::int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const std::int64_t label = labels[r] - first;
    for (std::int64_t c = threadIdx.x; c < p.columns; c += kThreads)
      out.store(r, c, scale * (p.load(r, c) - (c == label ? 1.0F : 0.0F)));
  }
}

}  // namespace

void run(const Context& context, const Softmax& call) {
  by_type(call.scores.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "softmax", softmax<T>, {blocks_of_rows(call.scores)}, rows_of<T>(call.scores),
           rows_of<T>(call.probabilities), call);
  });
}

void run(const Context& context, const SoftmaxBackward& call) {
  by_type(call.probabilities.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "softmax backward", softmax_backward<T>, {blocks_of_rows(call.probabilities)},
           rows_of<T>(call.probability_gradient), rows_of<T>(call.probabilities), rows_of<T>(call.score_gradient),
           call.scale);
  });
}

void run(const Context& context, const LossMaximum& call) {
  by_type(call.logits.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "loss maximum", maximum_of_rows<T>, {blocks_of_rows(call.logits)}, rows_of<T>(call.logits),
           floats(call.maximum));
  });
}

void run(const Context& context, const LossShift& call) {
  for_elements(context.stream, call.logits.rows, call.logits.columns,
               Shift{rows_of<float>(call.logits), rows_of<float>(call.shifted), floats(call.maximum)}, "loss shift");
}

void run(const Context& context, const LossSum& call) {
  launch(context.stream, "loss sum", sum_of_rows, {blocks_of_rows(call.exponentials)},
         rows_of<float>(call.exponentials), floats(call.sum));
}

void run(const Context& context, const LossExponentials& call) {
  by_type(call.logits.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "loss exponentials", exponentials<T>, {blocks_of_rows(call.logits)},
           rows_of<T>(call.logits), labels_of(call.labels), floats(call.maximum), rows_of<float>(call.exponentials),
           floats(call.target), floats(call.sum), call.first);
  });
}

void run(const Context& context, const Loss& call) {
  launch(context.stream, "loss", probabilities, {blocks_of_rows(call.exponentials)}, rows_of<float>(call.exponentials),
         floats(call.target), floats(call.sum), rows_of<float>(call.probabilities), floats(call.loss));
}

void run(const Context& context, const LossBackward& call) {
  by_type(call.logit_gradient.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "loss backward", logit_gradient<T>, {blocks_of_rows(call.probabilities)},
           rows_of<float>(call.probabilities), labels_of(call.labels), rows_of<T>(call.logit_gradient), call.first,
           call.scale);
  });
}

}  // namespace rehearse::kernels::cuda
