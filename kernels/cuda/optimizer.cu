// The optimizer step: one pass over gradient, moments, master weight and its copy.
#include <cmath>

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

// `weight` may be absent.
template <typename G, typename S, typename W>
struct Step {
  const G* gradient;
  S *mean, *square, *master;
  W* weight;
  const float* scale;
  float rate, beta1, beta2, epsilon, decay;
  float mean_share, square_share;  // corrections of the moments' start at zero
  __device__ void operator()(std::int64_t /*row*/, std::int64_t i) const {
    const float factor = scale == nullptr ? 1.0F : *scale;
    const float old = to_float(master[i]);
    if (isnan(factor)) {
      if (weight != nullptr) weight[i] = from_float<W>(old);
      return;
    }
    const float g = to_float(gradient[i]) * factor;
    const float m = beta1 * to_float(mean[i]) + (1 - beta1) * g;
    const float s = beta2 * to_float(square[i]) + (1 - beta2) * g * g;
    const float next = old - rate * (m * mean_share / (sqrtf(s * square_share) + epsilon) + decay * old);
    mean[i] = from_float<S>(m);
    square[i] = from_float<S>(s);
    master[i] = from_float<S>(next);
    if (weight != nullptr) weight[i] = from_float<W>(next);
  }
};

// Each block in double, so that only the sum over blocks rounds.
template <typename T>
__global__ void square_sum(Rows<T> in, float* total) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (std::int64_t r = blockIdx.y; r < in.rows; r += gridDim.y) {
    const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
    for (std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; c < in.columns; c += step) {
      const double x = in.load(r, c);
      sum += x * x;
    }
  }
  sums[threadIdx.x] = sum;
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) atomicAdd(total, static_cast<float>(sums[0]));
}

__global__ void clip_scale(const float* sum, float* scale, float limit, float loss_scale) {
  const float divisor = loss_scale > 0 ? loss_scale : 1;
  const float clip = fminf(1, limit / (sqrtf(*sum) / divisor + 1e-6F));
  *scale = loss_scale > 0 && !isfinite(*sum) ? nanf("") : clip / divisor;
}

}  // namespace

void run(const Context& context, const Adam& call) {
  for (const Tensor* tensor : {&call.gradient, &call.mean, &call.square, &call.master, &call.weight})
    if (!tensor->contiguous()) throw DeviceError("the optimizer steps through whole tensors");
  const auto step = static_cast<double>(call.step);
  const auto share = [step](float beta) { return static_cast<float>(1 / (1 - std::pow(double{beta}, step))); };
  const Type weight = call.weight.given() ? call.weight.type : Type::fp32;
  by_types(call.gradient.type, weight, [&](auto zero, auto none) {
    by_type(call.master.type, [&](auto of_state) {
      using G = decltype(zero);
      using S = decltype(of_state);
      using W = decltype(none);
      const Step<G, S, W> body{data<G>(call.gradient), data<S>(call.mean), data<S>(call.square), data<S>(call.master),
                               data<W>(call.weight), floats(call.scale), call.rate, call.beta1, call.beta2,
                               call.epsilon, call.decay, share(call.beta1), share(call.beta2)};
      for_elements(context.stream, 1, call.master.elements(), body, "Adam");
    });
  });
}

void run(const Context& context, const SquareSum& call) {
  constexpr std::int64_t kMostBlocks = 1024;
  const std::int64_t across = std::min<std::int64_t>(kMostBlocks, blocks_for(call.input.columns));
  const std::int64_t down = std::min(std::max<std::int64_t>(1, kMostBlocks / across), call.input.rows);
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "sum of squares", square_sum<T>, {dim3(some_blocks(across), some_blocks(down))},
           rows_of<T>(call.input), floats(call.sum));
  });
}

void run(const Context& context, const ClipScale& call) {
  launch(context.stream, "clip scale", clip_scale, {1, 1}, floats(call.sum), floats(call.scale), call.limit,
         call.loss_scale);
}

}  // namespace rehearse::kernels::cuda
