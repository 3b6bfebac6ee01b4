// Repeats the keys or values that a group shares for each of its query heads, and sums their gradients.
#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::Add;
using kernels::Cast;

Calls spread(const Shape& shape, const kernels::Tensor& shared, const kernels::Tensor& repeated) {
  const std::int64_t width = repeated.columns / shape.heads, group = shape.heads / shape.kv_heads;
  Calls calls;
  for (std::int64_t head = 0; head < shape.heads; ++head)
    calls.push_back(Cast{shared.slice(head / group * width, width), repeated.slice(head * width, width)});
  return calls;
}

// Sums as many at a time as an Add takes. The first of them is the sum so far.
Calls collect(const Shape& shape, const kernels::Tensor& repeated, const kernels::Tensor& shared) {
  const std::int64_t width = repeated.columns / shape.heads, group = shape.heads / shape.kv_heads;
  Calls calls;
  for (std::int64_t of = 0; of < shape.kv_heads; ++of) {
    const kernels::Tensor sum = shared.slice(of * width, width);
    for (std::int64_t member = 0; member < group;) {
      Add add;
      add.output = sum;
      std::size_t inputs = 0;
      if (member > 0) add.inputs[inputs++] = sum;
      while (inputs < add.inputs.size() && member < group)
        add.inputs[inputs++] = repeated.slice((of * group + member++) * width, width);
      calls.push_back(add);
    }
  }
  return calls;
}

}  // namespace

Calls repeat_calls(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  return spread(shape, launch.read(0, shape.tokens), launch.write(0, shape.tokens));
}

Calls sum_repeated_calls(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  return collect(shape, launch.read(0, shape.tokens), launch.write(0, shape.tokens));
}

}  // namespace rehearse
