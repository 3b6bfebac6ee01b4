// Choice of experts, and the token permutations to them and back.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

constexpr int kWarp = 32;
constexpr int kWarps = kThreads / kWarp;
constexpr unsigned kAll = 0xffffffffU;
constexpr std::int64_t kMaxExperts = 64 * kWarp;  // a lane marks its chosen ones in 64 bits

// A score and its expert. The higher score wins; ties go to the lower expert.
struct Candidate {
  float score;
  int expert;
  __device__ bool before(const Candidate& other) const {
    if (other.expert < 0) return true;
    return score > other.score || (score == other.score && expert < other.expert);
  }
};

__device__ Candidate best_of_warp(Candidate mine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Candidate other{__shfl_xor_sync(kAll, mine.score, offset), __shfl_xor_sync(kAll, mine.expert, offset)};
    if (other.expert >= 0 && (mine.expert < 0 || other.before(mine))) mine = other;
  }
  return mine;
}

// weights[k] = softmax over the chosen scores, by one thread.
template <typename T>
__device__ void chosen_softmax(const T* scores, const std::int32_t* choices, std::int64_t count, float* weights) {
  float largest = -INFINITY, sum = 0;
  for (std::int64_t k = 0; k < count; ++k) largest = fmaxf(largest, to_float(scores[choices[k]]));
  for (std::int64_t k = 0; k < count; ++k) sum += weights[k] = expf(to_float(scores[choices[k]]) - largest);
  for (std::int64_t k = 0; k < count; ++k) weights[k] /= sum;
}

// One warp a row.
template <typename T>
__global__ void top_k(Rows<T> scores, const float* bias, Rows<float> weights, Rows<std::int32_t> choices) {
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < scores.rows;
       r += std::int64_t{gridDim.x} * kWarps) {
    std::uint64_t taken = 0;
    for (std::int64_t k = 0; k < choices.columns; ++k) {
      Candidate best{0, -1};
      for (int e = lane; e < scores.columns; e += kWarp) {
        if ((taken >> (e / kWarp) & 1) != 0) continue;
        const Candidate mine{scores.load(r, e) + (bias == nullptr ? 0.0F : bias[e]), e};
        if (mine.before(best)) best = mine;
      }
      best = best_of_warp(best);
      if (best.expert % kWarp == lane) taken |= std::uint64_t{1} << (best.expert / kWarp);
      if (lane == 0) choices.row(r)[k] = best.expert;
    }
    if (lane == 0) chosen_softmax(scores.row(r), choices.row(r), choices.columns, weights.row(r));
  }
}

// One thread a row.
template <typename T>
__global__ void choose_in_turn(Rows<T> scores, DeviceTokens tokens, std::int64_t first_position, Rows<float> weights,
                               Rows<std::int32_t> choices) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads, count = choices.columns;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; r < scores.rows; r += step) {
    const std::int64_t position = first_position + tokens.position(r);
    for (std::int64_t k = 0; k < count; ++k)
      choices.row(r)[k] = static_cast<std::int32_t>((position * count + k) % scores.columns);
    chosen_softmax(scores.row(r), choices.row(r), count, weights.row(r));
  }
}

constexpr std::int64_t kMaxChoices = 64;

// One warp a row.
template <typename T>
__global__ void top_k_backward(Rows<float> gradient, Rows<T> scores, Rows<std::int32_t> choices, Rows<T> out) {
  const int lane = threadIdx.x % kWarp;
  for (std::int64_t r = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; r < out.rows;
       r += std::int64_t{gridDim.x} * kWarps) {
    for (std::int64_t e = lane; e < out.columns; e += kWarp) out.store(r, e, 0);
    __syncwarp();
    if (lane != 0) continue;
    float weights[kMaxChoices];
    chosen_softmax(scores.row(r), choices.row(r), choices.columns, weights);
    float dot = 0;
    for (std::int64_t k = 0; k < choices.columns; ++k) dot += weights[k] * gradient.row(r)[k];
    for (std::int64_t k = 0; k < choices.columns; ++k)
      out.store(r, choices.row(r)[k], weights[k] * (gradient.row(r)[k] - dot));
  }
}

__global__ void count_choices(const std::int32_t* choices, std::int64_t count, float* counts) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t c = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; c < count; c += step)
    atomicAdd(counts + choices[c], 1.0F);
}

// One block an expert. It counts the choices of earlier experts, then places its own in their order.
__global__ void sort_choices(const std::int32_t* choices, std::int64_t count, std::int32_t* place) {
  __shared__ int below, of_warp[kWarps];
  const int expert = static_cast<int>(blockIdx.x), lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  if (threadIdx.x == 0) below = 0;
  __syncthreads();
  int mine = 0;
  for (std::int64_t c = threadIdx.x; c < count; c += kThreads) mine += choices[c] < expert ? 1 : 0;
  atomicAdd(&below, mine);
  __syncthreads();
  int next = below;
  for (std::int64_t first = 0; first < count; first += kThreads) {
    const std::int64_t c = first + threadIdx.x;
    const bool own = c < count && choices[c] == expert;
    const unsigned voters = __ballot_sync(kAll, own);
    if (lane == 0) of_warp[warp] = __popc(voters);
    __syncthreads();
    int before = next + __popc(voters & ((1U << lane) - 1));
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) before += of_warp[w];
      next += of_warp[w];
    }
    if (own) place[c] = before;
    __syncthreads();  // all have read of_warp
  }
}

__global__ void transpose_blocks(std::int32_t* place, std::int64_t sources, std::int64_t experts, std::int64_t rows) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads, all = sources * experts * rows;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < all; i += step) {
    const std::int64_t block = i / rows, to = block % experts * sources + block / experts;
    place[i] = static_cast<std::int32_t>(to * rows + i % rows);
  }
}

template <typename T>
struct Spread {
  Rows<T> in, out;
  const float* weights;
  float* out_weights;
  const std::int32_t* place;
  std::int64_t copies;
  __device__ void operator()(std::int64_t choice, std::int64_t c) const {
    const std::int64_t to = place[choice];
    out.row(to)[c] = in.row(choice / copies)[c];
    if (c == 0 && weights != nullptr) out_weights[to] = weights[choice];
  }
};

template <typename T>
struct Collect {
  Rows<T> in, out;
  const float* weights;
  float* out_weights;
  const std::int32_t* place;
  std::int64_t copies;
  __device__ void operator()(std::int64_t t, std::int64_t c) const {
    float sum = 0;
    for (std::int64_t choice = t * copies; choice < (t + 1) * copies; ++choice) {
      const std::int64_t from = place[choice];
      sum += in.load(from, c);
      if (c == 0 && weights != nullptr) out_weights[choice] = weights[from];
    }
    out.store(t, c, sum);
  }
};

unsigned blocks_of_warps(std::int64_t rows) { return some_blocks((rows + kWarps - 1) / kWarps); }

void require(bool holds, const char* rule) {
  if (!holds) throw DeviceError(rule);
}

}  // namespace

void run(const Context& context, const TopK& call) {
  require(call.choices.columns <= call.scores.columns, "a row cannot choose more experts than there are");
  require(call.scores.columns <= kMaxExperts, "a row chooses among at most 2048 experts");
  by_type(call.scores.type, [&](auto zero) {
    using T = decltype(zero);
    if (call.in_turn) {
      launch(context.stream, "top k", choose_in_turn<T>, {blocks_for(call.scores.rows)}, rows_of<T>(call.scores),
             on_device(call.tokens), call.first_position, rows_of<float>(call.weights),
             rows_of<std::int32_t>(call.choices));
      return;
    }
    launch(context.stream, "top k", top_k<T>, {blocks_of_warps(call.scores.rows)}, rows_of<T>(call.scores),
           floats(call.bias), rows_of<float>(call.weights), rows_of<std::int32_t>(call.choices));
  });
}

void run(const Context& context, const TopKBackward& call) {
  require(call.choices.columns <= kMaxChoices, "a row chooses at most 64 experts");
  by_type(call.scores.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "top k backward", top_k_backward<T>, {blocks_of_warps(call.scores.rows)},
           rows_of<float>(call.weight_gradient), rows_of<T>(call.scores), rows_of<std::int32_t>(call.choices),
           rows_of<T>(call.score_gradient));
  });
}

void run(const Context& context, const CountChoices& call) {
  const std::int64_t count = call.choices.elements();
  launch(context.stream, "count of choices", count_choices, {blocks_for(count)}, data<std::int32_t>(call.choices), count,
         floats(call.counts));
}

void run(const Context& context, const SortChoices& call) {
  require(call.choices.contiguous(), "choices that are sorted lie one after the other");
  launch(context.stream, "sort of choices", sort_choices, {some_blocks(call.experts)}, data<std::int32_t>(call.choices),
         call.choices.elements(), data<std::int32_t>(call.place));
}

void run(const Context& context, const TransposeBlocks& call) {
  launch(context.stream, "transpose of blocks", transpose_blocks, {blocks_for(call.sources * call.experts * call.rows)},
         data<std::int32_t>(call.place), call.sources, call.experts, call.rows);
}

void run(const Context& context, const SpreadRows& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.place.elements(), call.input.columns,
                 Spread<T>{rows_of<T>(call.input), rows_of<T>(call.output), floats(call.weights),
                           floats(call.output_weights), data<std::int32_t>(call.place), call.copies},
                 "spread of rows");
  });
}

void run(const Context& context, const CollectRows& call) {
  by_type(call.input.type, [&](auto zero) {
    using T = decltype(zero);
    for_elements(context.stream, call.output.rows, call.output.columns,
                 Collect<T>{rows_of<T>(call.input), rows_of<T>(call.output), floats(call.weights),
                            floats(call.output_weights), data<std::int32_t>(call.place), call.copies},
                 "collection of rows");
  });
}

}  // namespace rehearse::kernels::cuda
