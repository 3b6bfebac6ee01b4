// The optimizer step: one pass over gradient, moments, master weight and its copy.
#include <cmath>

#include "kernels/cuda/lanes.cuh"
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
  float mean_share, square_share;  // bias corrections of the moments, which start at zero
  template <int N>
  bool in_packs() const {
    return cuda::in_packs<N>(gradient) && cuda::in_packs<N>(mean) && cuda::in_packs<N>(square) &&
           cuda::in_packs<N>(master) && cuda::in_packs<N>(weight);
  }
  template <int N>
  __device__ void at(std::int64_t /*row*/, std::int64_t first) const {
    const float factor = scale == nullptr ? 1.0F : *scale;
    Lanes<N> old = load<N>(master + first);
    if (!isnan(factor)) {
      const Lanes<N> g = load<N>(gradient + first);
      Lanes<N> m = load<N>(mean + first), s = load<N>(square + first);
      for (int i = 0; i < N; ++i) {
        const float scaled = g.x[i] * factor;
        m.x[i] = beta1 * m.x[i] + (1 - beta1) * scaled;
        s.x[i] = beta2 * s.x[i] + (1 - beta2) * scaled * scaled;
        old.x[i] -= rate * (m.x[i] * mean_share / (sqrtf(s.x[i] * square_share) + epsilon) + decay * old.x[i]);
      }
      store(mean + first, m);
      store(square + first, s);
      store(master + first, old);
    }
    if (weight != nullptr) store(weight + first, old);
  }
};

// Each block sums in double, so that only the sum over blocks rounds.
template <int N, typename T>
__global__ void square_sum(Rows<T> in, float* total) {
  __shared__ double sums[kThreads];
  double sum = 0;
  for (std::int64_t r = blockIdx.y; r < in.rows; r += gridDim.y) {
    const std::int64_t step = std::int64_t{gridDim.x} * kThreads * N;
    for (std::int64_t c = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) * N; c < in.columns; c += step) {
      for (const double x : load<N>(in.row(r) + c).x) sum += x * x;
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
      for_packs<kLanes<G, S, W>>(context.stream, 1, call.master.elements(), body, "Adam");
    });
  });
}

void run(const Context& context, const SquareSum& call) {
  constexpr std::int64_t kMaxBlocks = 1024;
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    const Rows<T> in = rows_of<T>(call.input);
    const bool wide = in_packs<kLanes<T>>(in);
    const std::int64_t across = std::min<std::int64_t>(kMaxBlocks, blocks_for(in.columns / (wide ? kLanes<T> : 1)));
    const std::int64_t down = std::min(std::max<std::int64_t>(1, kMaxBlocks / across), in.rows);
    launch(context.stream, "sum of squares", wide ? square_sum<kLanes<T>, T> : square_sum<1, T>,
           {dim3(some_blocks(across), some_blocks(down))}, in, floats(call.sum));
  });
}

void run(const Context& context, const ClipScale& call) {
  launch(context.stream, "clip scale", clip_scale, {1, 1}, floats(call.sum), floats(call.scale), call.limit,
         call.loss_scale);
}

}  // namespace rehearse::kernels::cuda
