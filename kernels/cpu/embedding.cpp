#include <algorithm>

#include "kernels/cpu/access.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/run.h"

namespace rehearse::kernels::cpu {

namespace {

void add_to(float* sum, const float* more, std::int64_t first, std::int64_t last) {
  for (std::int64_t c = first; c < last; ++c) sum[c] += more[c];
}

}  // namespace

void run(const Embedding& call) {
  const std::int64_t* tokens = data<std::int64_t>(call.tokens);
  for_each(call.output.rows, [&](std::int64_t r) {
    const std::int64_t index = tokens[r] - call.first;
    float* out = row(call.output, r);
    if (index < 0 || index >= call.table.rows) {
      std::fill_n(out, call.output.columns, 0.0F);
    } else {
      std::copy_n(row(call.table, index), call.output.columns, out);
    }
  });
}

// Threads divide columns, as two rows may have the same token.
void run(const EmbeddingBackward& call) {
  const std::int64_t* tokens = data<std::int64_t>(call.tokens);
  const Tensor& gradient = call.output_gradient;
  for_stretches(gradient.columns, kLineFloats, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = 0; r < gradient.rows; ++r) {
      const std::int64_t index = tokens[r] - call.first;
      if (index < 0 || index >= call.table_gradient.rows) continue;
      add_to(row(call.table_gradient, index), row(gradient, r), first, last);
    }
  });
}

void run(const Positions& call) {
  for_each(call.input.rows, [&](std::int64_t r) {
    const std::int64_t position = position_of_place(call.tokens, place_of_row(call.tokens, r));
    const float *in = row(call.input, r), *table = row(call.table, position);
    float* out = row(call.output, r);
    for (std::int64_t c = 0; c < call.input.columns; ++c) out[c] = in[c] + table[c];
  });
}

void run(const PositionsBackward& call) {
  const Tensor& gradient = call.output_gradient;
  for_stretches(gradient.columns, kLineFloats, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t r = 0; r < gradient.rows; ++r) {
      const std::int64_t position = position_of_place(call.tokens, place_of_row(call.tokens, r));
      add_to(row(call.table_gradient, position), row(gradient, r), first, last);
    }
  });
}

}  // namespace rehearse::kernels::cpu
