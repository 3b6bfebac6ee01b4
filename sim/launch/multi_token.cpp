#include "launch/views.h"

namespace rehearse {

// Puts {embedding, hidden state} side by side.
Calls join_columns_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows, width = launch.bound.shape.hidden;
  const kernels::Tensor both = launch.write(0, rows);
  return {kernels::Cast{launch.read(0, rows), both.slice(0, width)},
          kernels::Cast{launch.read(1, rows), both.slice(width, width)}};
}

// Separates the gradients of both.
Calls part_columns_calls(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows, width = launch.bound.shape.hidden;
  const kernels::Tensor both = launch.read(0, rows);
  return {kernels::Cast{both.slice(0, width), launch.write(0, rows)},
          kernels::Cast{both.slice(width, width), launch.write(1, rows)}};
}

// Each rank computed its columns of all rows. Joins them to complete rows, for this rank's rows.
Calls join_shards_calls(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t width = shape.hidden / shape.tp;
  const std::int64_t first = shape.sequence_parallel ? launch.bound.tensor_rank * shape.rows : 0;
  Calls calls;
  for (std::int64_t rank = 0; rank < shape.tp; ++rank)
    calls.push_back(kernels::Cast{
        launch.part(launch.kernel.reads[0], (rank * shape.tokens + first) * width, shape.rows, width),
        launch.write(0, shape.rows).slice(rank * width, width)});
  return calls;
}

// Takes this rank's columns out of the gradient of all rows.
Calls own_shard_calls(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t width = shape.hidden / shape.tp;
  return {kernels::Cast{launch.read(0, shape.tokens).slice(launch.bound.tensor_rank * width, width),
                        launch.write(0, shape.tokens)}};
}

}  // namespace rehearse
