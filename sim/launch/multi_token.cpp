#include "launch/views.h"

namespace rehearse {

namespace {

// {embedding, hidden state} beside each other, or their gradients apart.
Calls join(const Launch& launch) {
  const std::int64_t rows = launch.bound.shape.rows, width = launch.bound.shape.hidden;
  const bool back = launch.ends_with("_backward");
  const kernels::Tensor both = back ? launch.read(0, rows) : launch.write(0, rows);
  Calls calls;
  for (std::size_t i = 0; i < 2; ++i) {
    const kernels::Tensor half = both.slice(static_cast<std::int64_t>(i) * width, width);
    if (back)
      calls.push_back(kernels::Cast{half, launch.write(i, rows)});
    else
      calls.push_back(kernels::Cast{launch.read(i, rows), half});
  }
  return calls;
}

// Of all rows, as each rank made its columns of them, this rank's rows whole.
Calls whole_rows(const Launch& launch) {
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

// Of the gradient of all rows this rank's columns.
Calls own_columns(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t width = shape.hidden / shape.tp;
  return {kernels::Cast{launch.read(0, shape.tokens).slice(launch.bound.tensor_rank * width, width),
                        launch.write(0, shape.tokens)}};
}

}  // namespace

Calls module_calls(const Launch& launch) {
  if (launch.kernel.name.starts_with("join")) return join(launch);
  return launch.named("projected_join") ? whole_rows(launch) : own_columns(launch);
}

}  // namespace rehearse
