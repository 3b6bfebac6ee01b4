// The loss over a whole vocabulary: one block a row.
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

// Computed in one pass; every thread of the block gets the result (Milakov and Gimelshein 2018, Online
// normalizer calculation for softmax, algorithm 3).
template <int N, typename T>
__device__ float log_sum_of_exponentials(Rows<T> logits, std::int64_t r) {
  float largest = -INFINITY, sum = 0;
  for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < logits.columns; c += kThreads * N) {
    const Lanes<N> x = load<N>(logits.row(r) + c);
    float more = largest;
    for (int i = 0; i < N; ++i) more = fmaxf(more, x.x[i]);
    if (more == -INFINITY) continue;
    sum *= expf(largest - more);
    for (int i = 0; i < N; ++i) sum += expf(x.x[i] - more);
    largest = more;
  }
  const float of_all = block_maximum(largest);
  return of_all + logf(block_sum(sum * expf(largest - of_all)));
}

template <int N>
__global__ void log_softmax(Rows<float> logits, const std::int64_t* labels, Rows<float> out, float* loss) {
  for (std::int64_t r = blockIdx.x; r < logits.rows; r += gridDim.x) {
    const float log_sum = log_sum_of_exponentials<N>(logits, r);
    for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < logits.columns; c += kThreads * N) {
      const Lanes<N> x = load<N>(logits.row(r) + c);
      store(out.row(r) + c, Lanes<N>::of([&](int i) { return x.x[i] - log_sum; }));
    }
    if (threadIdx.x == 0) loss[r] = log_sum - logits.load(r, labels[r]);
  }
}

struct Likelihood {
  Rows<float> out;
  const std::int64_t* labels;
  float scale;
  __device__ void operator()(std::int64_t r, std::int64_t c) const { out.store(r, c, c == labels[r] ? -scale : 0.0F); }
};

template <int N>
__global__ void log_softmax_backward(Rows<float> gradient, Rows<float> log_probabilities, Rows<float> out) {
  for (std::int64_t r = blockIdx.x; r < gradient.rows; r += gridDim.x) {
    float sum = 0;
    for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < gradient.columns; c += kThreads * N)
      for (const float x : load<N>(gradient.row(r) + c).x) sum += x;
    sum = block_sum(sum);
    for (std::int64_t c = std::int64_t{threadIdx.x} * N; c < gradient.columns; c += kThreads * N) {
      const Lanes<N> g = load<N>(gradient.row(r) + c), logarithm = load<N>(log_probabilities.row(r) + c);
      store(out.row(r) + c, Lanes<N>::of([&](int i) { return g.x[i] - sum * expf(logarithm.x[i]); }));
    }
  }
}

template <int N, typename T>
__global__ void token_loss(Rows<T> logits, const std::int64_t* labels, float* log_sums, float* loss) {
  for (std::int64_t r = blockIdx.x; r < logits.rows; r += gridDim.x) {
    const float log_sum = log_sum_of_exponentials<N>(logits, r);
    if (threadIdx.x != 0) continue;
    log_sums[r] = log_sum;
    loss[r] = log_sum - logits.load(r, labels[r]);
  }
}

template <typename T>
struct TokenGradient {
  Rows<T> logits, out;
  const std::int64_t* labels;
  const float* log_sums;
  float scale;
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(logits) && cuda::in_packs<N>(out);
  }
  template <int N>
  __device__ void at(std::int64_t r, std::int64_t c) const {
    const float log_sum = log_sums[r];
    const std::int64_t label = labels[r];
    const Lanes<N> x = load<N>(logits.row(r) + c);
    store(out.row(r) + c,
          Lanes<N>::of([&](int i) { return scale * (expf(x.x[i] - log_sum) - (c + i == label ? 1.0F : 0.0F)); }));
  }
};

}  // namespace

void run(const Context& context, const LogSoftmax& call) {
  constexpr int kMax = kLanes<float>;
  const Rows<float> logits = rows_of<float>(call.logits), out = rows_of<float>(call.log_probabilities);
  const bool wide = in_packs<kMax>(logits) && in_packs<kMax>(out);
  launch(context.stream, "log softmax", wide ? log_softmax<kMax> : log_softmax<1>, {blocks_of_rows(call.logits)}, logits,
         labels_of(call.labels), out, floats(call.loss));
}

void run(const Context& context, const LikelihoodBackward& call) {
  for_elements(context.stream, call.gradient.rows, call.gradient.columns,
               Likelihood{rows_of<float>(call.gradient), labels_of(call.labels), call.scale}, "likelihood backward");
}

void run(const Context& context, const LogSoftmaxBackward& call) {
  constexpr int kMax = kLanes<float>;
  const Rows<float> gradient = rows_of<float>(call.gradient), of = rows_of<float>(call.log_probabilities);
  const Rows<float> out = rows_of<float>(call.logit_gradient);
  const bool wide = in_packs<kMax>(gradient) && in_packs<kMax>(of) && in_packs<kMax>(out);
  launch(context.stream, "log softmax backward", wide ? log_softmax_backward<kMax> : log_softmax_backward<1>,
         {blocks_of_rows(call.gradient)}, gradient, of, out);
}

void run(const Context& context, const TokenLoss& call) {
  by_type(call.logits.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> logits = rows_of<T>(call.logits);
    launch(context.stream, "token loss", in_packs<kLanes<T>>(logits) ? token_loss<kLanes<T>, T> : token_loss<1, T>,
           {blocks_of_rows(call.logits)}, logits, labels_of(call.labels), floats(call.log_sum), floats(call.loss));
  });
}

void run(const Context& context, const TokenLossBackward& call) {
  by_type(call.logits.type, [&](auto zero) {
    using T = decltype(zero);
    for_packs<kLanes<T>>(context.stream, call.logits.rows, call.logits.columns,
                         TokenGradient<T>{rows_of<T>(call.logits), rows_of<T>(call.logit_gradient),
                                          labels_of(call.labels), floats(call.log_sum), call.scale},
                         "token loss backward");
  });
}

}  // namespace rehearse::kernels::cuda
