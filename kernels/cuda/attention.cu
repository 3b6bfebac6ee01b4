// Attention without scores in memory, where cuDNN does not compute it. A block works on one tile of queries (or
// keys) of one head, in fp32 from shared memory: its GEMMs do not use the tensor cores.
#include "kernels/cuda/common.cuh"
#include "kernels/cuda/fused_attention.h"
#include "kernels/cuda/run.h"

namespace rehearse::kernels::cuda {

namespace {

constexpr int kTile = 32;      // queries and keys
constexpr int kSide = 8;       // kThreads = kTile x kSide: a thread has one query and every kSide-th key
constexpr int kMaxWidth = 256;

// Floats between rows of a tile in shared memory. It is odd, so that threads that read one column use all
// banks.
__host__ __device__ constexpr std::int64_t pitch(std::int64_t width) { return width | 1; }

struct DeviceShape {
  DeviceTokens queries, keys;
  std::int64_t heads, group, width, v_width;
  bool causal;
  std::int64_t window;
  float scale;
  __device__ std::int64_t pitch() const { return cuda::pitch(width); }
  __device__ std::int64_t v_pitch() const { return cuda::pitch(v_width); }
  // Whether no query of one tile sees a key of the other. Decided only where sequences are in order.
  __device__ bool apart(std::int64_t first_query, std::int64_t first_key) const {
    if (queries.positions != nullptr || keys.positions != nullptr) return false;
    return (causal && first_key >= first_query + kTile) || (window > 0 && first_key + kTile <= first_query - window + 1);
  }
  __device__ bool sees(std::int64_t query, std::int64_t key) const {
    return (!causal || key <= query) && (window == 0 || key > query - window);
  }
};

DeviceShape on_device(const AttentionShape& shape) {
  return {cuda::on_device(shape.queries), cuda::on_device(shape.keys), shape.heads, shape.heads / shape.kv_heads,
          shape.head_dim, shape.v_head_dim, shape.causal, shape.window, shape.scale};
}

// Columns of one head of `count` places from `first` on, as tile[place][column]; zeros beyond the end.
template <typename T>
__device__ void load_tile(float* tile, const Rows<T>& from, const DeviceTokens& tokens, std::int64_t sequence,
                          std::int64_t first, std::int64_t head, std::int64_t width) {
  for (std::int64_t i = threadIdx.x; i < kTile * width; i += kThreads) {
    const std::int64_t place = first + i / width;
    tile[i / width * pitch(width) + i % width] =
        place < tokens.length ? from.load(tokens.row(sequence, place), head * width + i % width) : 0.0F;
  }
}

__device__ float dot(const float* a, const float* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t c = 0; c < width; ++c) sum += a[c] * b[c];
  return sum;
}

// Shared memory: queries, keys, values, accumulated output, scores.
template <typename T>
__global__ void forward(DeviceShape shape, Rows<T> query, Rows<T> key, Rows<T> value, Rows<T> output, Rows<float> lse) {
  float* const shared = shared_floats();
  float *q = shared, *k = q + kTile * shape.pitch(), *v = k + kTile * shape.pitch(), *o = v + kTile * shape.v_pitch(),
        *p = o + kTile * shape.v_pitch();
  __shared__ float maximum[kTile], total[kTile], keep[kTile];
  const std::int64_t head = blockIdx.y % shape.heads, sequence = blockIdx.y / shape.heads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTile, shared_head = head / shape.group;
  const int i = threadIdx.x / kSide, lane = threadIdx.x % kSide;
  const std::int64_t mine = first + i;
  const std::int64_t position = mine < shape.queries.length ? shape.queries.position_of_place(mine) : 0;
  load_tile(q, query, shape.queries, sequence, first, head, shape.width);
  for (std::int64_t c = threadIdx.x; c < kTile * shape.v_pitch(); c += kThreads) o[c] = 0;
  if (threadIdx.x < kTile) {
    maximum[threadIdx.x] = -INFINITY;
    total[threadIdx.x] = 0;
  }
  for (std::int64_t at = 0; at < shape.keys.length; at += kTile) {
    if (shape.apart(first, at)) continue;
    __syncthreads();
    load_tile(k, key, shape.keys, sequence, at, shared_head, shape.width);
    load_tile(v, value, shape.keys, sequence, at, shared_head, shape.v_width);
    __syncthreads();
    for (int j = lane; j < kTile; j += kSide) {
      const bool seen = mine < shape.queries.length && at + j < shape.keys.length &&
                        shape.sees(position, shape.keys.position_of_place(at + j));
      p[i * kTile + j] = seen ? shape.scale * dot(q + i * shape.pitch(), k + j * shape.pitch(), shape.width) : -INFINITY;
    }
    __syncthreads();
    if (lane == 0) {
      float largest = maximum[i], sum = 0;
      for (int j = 0; j < kTile; ++j) largest = fmaxf(largest, p[i * kTile + j]);
      keep[i] = maximum[i] == -INFINITY ? 0.0F : expf(maximum[i] - largest);
      for (int j = 0; j < kTile; ++j) {
        const float e = p[i * kTile + j] == -INFINITY ? 0.0F : expf(p[i * kTile + j] - largest);
        p[i * kTile + j] = e;
        sum += e;
      }
      total[i] = total[i] * keep[i] + sum;
      maximum[i] = largest;
    }
    __syncthreads();
    for (std::int64_t c = lane; c < shape.v_width; c += kSide) {
      float sum = o[i * shape.v_pitch() + c] * keep[i];
      for (int j = 0; j < kTile; ++j) sum += p[i * kTile + j] * v[j * shape.v_pitch() + c];
      o[i * shape.v_pitch() + c] = sum;
    }
  }
  __syncthreads();
  if (mine >= shape.queries.length) return;
  const std::int64_t r = shape.queries.row(sequence, mine);
  const float share = total[i] > 0 ? 1 / total[i] : 0.0F;
  for (std::int64_t c = lane; c < shape.v_width; c += kSide)
    output.store(r, head * shape.v_width + c, share * o[i * shape.v_pitch() + c]);
  if (lane == 0) lse.store(r, head, total[i] > 0 ? maximum[i] + logf(total[i]) : -INFINITY);
}

template <typename T>
struct Gradients {
  Rows<T> dout, query, key, value, out;
  Rows<float> lse;
  Rows<T> dquery, dkey, dvalue;
};

// Probability and score gradient of query i and key j, from the tiles in shared memory.
struct Score {
  float probability, gradient;
};
__device__ Score score(const DeviceShape& shape, const float* q, const float* k, const float* v, const float* g,
                       float lse, float delta, bool seen) {
  if (!seen || lse == -INFINITY) return {0, 0};
  const float p = expf(shape.scale * dot(q, k, shape.width) - lse);
  return {p, p * (dot(g, v, shape.v_width) - delta) * shape.scale};
}

// Loads lse and delta (the sum of output times its gradient) of the queries of a tile.
template <typename T>
__device__ void load_statistics(float* lse, float* delta, const DeviceShape& shape, const Gradients<T>& all,
                                std::int64_t sequence, std::int64_t first, std::int64_t head) {
  if (threadIdx.x >= kTile) return;
  const std::int64_t place = first + threadIdx.x;
  lse[threadIdx.x] = -INFINITY;
  if (place >= shape.queries.length) return;
  const std::int64_t r = shape.queries.row(sequence, place);
  float sum = 0;
  for (std::int64_t c = head * shape.v_width; c < (head + 1) * shape.v_width; ++c)
    sum += all.dout.load(r, c) * all.out.load(r, c);
  lse[threadIdx.x] = all.lse.load(r, head);
  delta[threadIdx.x] = sum;
}

// One tile of queries over all keys: its own gradient.
template <typename T>
__global__ void query_gradient(DeviceShape shape, Gradients<T> all) {
  float* const shared = shared_floats();
  float *q = shared, *k = q + kTile * shape.pitch(), *v = k + kTile * shape.pitch(), *g = v + kTile * shape.v_pitch(),
        *dq = g + kTile * shape.v_pitch(), *ds = dq + kTile * shape.pitch();
  __shared__ float lse[kTile], delta[kTile];
  const std::int64_t head = blockIdx.y % shape.heads, sequence = blockIdx.y / shape.heads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTile, shared_head = head / shape.group;
  const int i = threadIdx.x / kSide, lane = threadIdx.x % kSide;
  const std::int64_t mine = first + i;
  const std::int64_t position = mine < shape.queries.length ? shape.queries.position_of_place(mine) : 0;
  load_tile(q, all.query, shape.queries, sequence, first, head, shape.width);
  load_tile(g, all.dout, shape.queries, sequence, first, head, shape.v_width);
  load_statistics(lse, delta, shape, all, sequence, first, head);
  for (std::int64_t c = threadIdx.x; c < kTile * shape.pitch(); c += kThreads) dq[c] = 0;
  for (std::int64_t at = 0; at < shape.keys.length; at += kTile) {
    if (shape.apart(first, at)) continue;
    __syncthreads();
    load_tile(k, all.key, shape.keys, sequence, at, shared_head, shape.width);
    load_tile(v, all.value, shape.keys, sequence, at, shared_head, shape.v_width);
    __syncthreads();
    for (int j = lane; j < kTile; j += kSide) {
      const bool seen = mine < shape.queries.length && at + j < shape.keys.length &&
                        shape.sees(position, shape.keys.position_of_place(at + j));
      ds[i * kTile + j] = score(shape, q + i * shape.pitch(), k + j * shape.pitch(), v + j * shape.v_pitch(),
                                g + i * shape.v_pitch(), lse[i], delta[i], seen).gradient;
    }
    __syncthreads();
    for (std::int64_t c = lane; c < shape.width; c += kSide) {
      float sum = dq[i * shape.pitch() + c];
      for (int j = 0; j < kTile; ++j) sum += ds[i * kTile + j] * k[j * shape.pitch() + c];
      dq[i * shape.pitch() + c] = sum;
    }
  }
  __syncthreads();
  if (mine >= shape.queries.length) return;
  for (std::int64_t c = lane; c < shape.width; c += kSide)
    all.dquery.store(shape.queries.row(sequence, mine), head * shape.width + c, dq[i * shape.pitch() + c]);
}

// One tile of keys over all queries of the heads that share it.
template <typename T>
__global__ void key_gradient(DeviceShape shape, Gradients<T> all) {
  float* const shared = shared_floats();
  float *q = shared, *k = q + kTile * shape.pitch(), *v = k + kTile * shape.pitch(), *g = v + kTile * shape.v_pitch(),
        *dk = g + kTile * shape.v_pitch(), *dv = dk + kTile * shape.pitch(), *p = dv + kTile * shape.v_pitch(),
        *ds = p + kTile * kTile;
  __shared__ float lse[kTile], delta[kTile];
  const std::int64_t kv_heads = shape.heads / shape.group;
  const std::int64_t shared_head = blockIdx.y % kv_heads, sequence = blockIdx.y / kv_heads;
  const std::int64_t first = std::int64_t{blockIdx.x} * kTile;
  const int j = threadIdx.x / kSide, lane = threadIdx.x % kSide;
  const std::int64_t mine = first + j;
  const std::int64_t position = mine < shape.keys.length ? shape.keys.position_of_place(mine) : 0;
  load_tile(k, all.key, shape.keys, sequence, first, shared_head, shape.width);
  load_tile(v, all.value, shape.keys, sequence, first, shared_head, shape.v_width);
  for (std::int64_t c = threadIdx.x; c < kTile * shape.pitch(); c += kThreads) dk[c] = 0;
  for (std::int64_t c = threadIdx.x; c < kTile * shape.v_pitch(); c += kThreads) dv[c] = 0;
  for (std::int64_t head = shared_head * shape.group; head < (shared_head + 1) * shape.group; ++head) {
    for (std::int64_t at = 0; at < shape.queries.length; at += kTile) {
      if (shape.apart(at, first)) continue;
      __syncthreads();
      load_tile(q, all.query, shape.queries, sequence, at, head, shape.width);
      load_tile(g, all.dout, shape.queries, sequence, at, head, shape.v_width);
      load_statistics(lse, delta, shape, all, sequence, at, head);
      __syncthreads();
      for (int i = lane; i < kTile; i += kSide) {
        const bool seen = mine < shape.keys.length && at + i < shape.queries.length &&
                          shape.sees(shape.queries.position_of_place(at + i), position);
        const Score s = score(shape, q + i * shape.pitch(), k + j * shape.pitch(), v + j * shape.v_pitch(),
                              g + i * shape.v_pitch(), lse[i], delta[i], seen);
        p[j * kTile + i] = s.probability;
        ds[j * kTile + i] = s.gradient;
      }
      __syncthreads();
      for (std::int64_t c = lane; c < shape.width; c += kSide) {
        for (int i = 0; i < kTile; ++i) dk[j * shape.pitch() + c] += ds[j * kTile + i] * q[i * shape.pitch() + c];
      }
      for (std::int64_t c = lane; c < shape.v_width; c += kSide) {
        for (int i = 0; i < kTile; ++i) dv[j * shape.v_pitch() + c] += p[j * kTile + i] * g[i * shape.v_pitch() + c];
      }
    }
  }
  __syncthreads();
  if (mine >= shape.keys.length) return;
  const std::int64_t r = shape.keys.row(sequence, mine);
  for (std::int64_t c = lane; c < shape.width; c += kSide)
    all.dkey.store(r, shared_head * shape.width + c, dk[j * shape.pitch() + c]);
  for (std::int64_t c = lane; c < shape.v_width; c += kSide)
    all.dvalue.store(r, shared_head * shape.v_width + c, dv[j * shape.v_pitch() + c]);
}

template <typename T>
__global__ void merge(std::int64_t heads, Rows<T> part, Rows<float> part_lse, Rows<T> output, Rows<float> lse) {
  const std::int64_t width = output.columns / heads;
  for (std::int64_t r = blockIdx.x; r < output.rows; r += gridDim.x) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const float total = lse.load(r, h), more = part_lse.load(r, h), largest = fmaxf(total, more);
      __syncthreads();  // all have read the old sum
      if (more == -INFINITY) continue;
      const float old_share = total == -INFINITY ? 0.0F : expf(total - largest), new_share = expf(more - largest);
      const float sum = old_share + new_share;
      for (std::int64_t c = h * width + threadIdx.x; c < (h + 1) * width; c += kThreads) {
        const float old = old_share > 0 ? old_share * output.load(r, c) : 0.0F;
        output.store(r, c, (old + new_share * part.load(r, c)) / sum);
      }
      if (threadIdx.x == 0) lse.store(r, h, largest + logf(sum));
    }
  }
}

unsigned tiles(std::int64_t places) { return static_cast<unsigned>((places + kTile - 1) / kTile); }

void require_narrow(const AttentionShape& shape) {
  if (shape.head_dim > kMaxWidth || shape.v_head_dim > kMaxWidth)
    throw DeviceError("attention on CUDA: heads are at most 256 wide");
}

std::size_t tile_bytes(std::int64_t columns) { return static_cast<std::size_t>(kTile * columns) * sizeof(float); }

}  // namespace

void run(const Context& context, const AttentionForward& call) {
  if (context.fused_attention != nullptr && context.fused_attention->run(context, call)) return;
  require_narrow(call.shape);
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t width = pitch(call.shape.head_dim), v_width = pitch(call.shape.v_head_dim);
    const std::size_t bytes = tile_bytes(2 * width + 2 * v_width + kTile);
    allow_shared(forward<T>, bytes);
    const dim3 grid(tiles(call.shape.queries.length),
                    static_cast<unsigned>(call.shape.queries.sequences * call.shape.heads));
    launch(context.stream, "attention", forward<T>, {grid, kThreads, bytes}, on_device(call.shape),
           rows_of<T>(call.query), rows_of<T>(call.key), rows_of<T>(call.value), rows_of<T>(call.output),
           rows_of<float>(call.log_sum_exp));
  });
}

void run(const Context& context, const AttentionBackward& call) {
  if (context.fused_attention != nullptr && context.fused_attention->run(context, call)) return;
  require_narrow(call.shape);
  by_type(call.query.type, [&](auto zero) {
    using T = decltype(zero);
    const Gradients<T> all{rows_of<T>(call.output_gradient), rows_of<T>(call.query), rows_of<T>(call.key),
                           rows_of<T>(call.value), rows_of<T>(call.output), rows_of<float>(call.log_sum_exp),
                           rows_of<T>(call.query_gradient), rows_of<T>(call.key_gradient),
                           rows_of<T>(call.value_gradient)};
    const std::int64_t width = pitch(call.shape.head_dim), v_width = pitch(call.shape.v_head_dim);
    const std::size_t of_queries = tile_bytes(3 * width + 2 * v_width + kTile);
    const std::size_t of_keys = tile_bytes(3 * width + 3 * v_width + 2 * kTile);
    allow_shared(query_gradient<T>, of_queries);
    allow_shared(key_gradient<T>, of_keys);
    const auto sequences = static_cast<unsigned>(call.shape.queries.sequences);
    const dim3 query_grid(tiles(call.shape.queries.length), sequences * static_cast<unsigned>(call.shape.heads));
    const dim3 key_grid(tiles(call.shape.keys.length), sequences * static_cast<unsigned>(call.shape.kv_heads));
    launch(context.stream, "attention backward", query_gradient<T>, {query_grid, kThreads, of_queries},
           on_device(call.shape), all);
    launch(context.stream, "attention backward", key_gradient<T>, {key_grid, kThreads, of_keys}, on_device(call.shape),
           all);
  });
}

void run(const Context& context, const AttentionMerge& call) {
  by_type(call.output.type, [&](auto zero) {
    using T = decltype(zero);
    launch(context.stream, "attention merge", merge<T>, {some_blocks(call.output.rows)}, call.heads,
           rows_of<T>(call.part), rows_of<float>(call.part_log_sum_exp), rows_of<T>(call.output),
           rows_of<float>(call.log_sum_exp));
  });
}

}  // namespace rehearse::kernels::cuda
