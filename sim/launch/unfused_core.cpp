#include "launch/views.h"

namespace rehearse {

namespace {

using kernels::Multiply;

// An operand of one sequence and one query head of each group; `step` leads to the next key head.
struct Operand {
  kernels::Tensor view;
  std::int64_t step = 0;
};

class Core {
 public:
  Core(const Launch& launch, std::int64_t sequence, std::int64_t member)
      : launch_(launch),
        shape_(launch.bound.shape),
        sequence_(sequence),
        member_(member),
        group_(shape_.heads / shape_.kv_heads) {}

  // Queries, attended values, or their gradients: tokens x heads.
  Operand of_queries(TensorId id) const {
    const std::int64_t width = launch_.elements(id) / shape_.tokens / shape_.heads;
    return {head(id, member_ * width, width), group_ * width};
  }
  // Keys, values, or their gradients: tokens x kv_heads.
  Operand of_keys(TensorId id) const {
    const std::int64_t width = launch_.elements(id) / shape_.tokens / shape_.kv_heads;
    return {head(id, 0, width), width};
  }
  // Scores, probabilities, or their gradients: sequences x heads squares.
  Operand squares(TensorId id) const {
    const std::int64_t square = shape_.seq * shape_.seq;
    return {launch_.part(id, (sequence_ * shape_.heads + member_) * square, shape_.seq, shape_.seq),
            group_ * square};
  }

  Multiply product(const Operand& a, bool transpose_a, const Operand& b, bool transpose_b,
                   const Operand& c) const {
    Multiply call;
    call.a = a.view;
    call.b = b.view;
    call.c = c.view;
    call.transpose_a = transpose_a;
    call.transpose_b = transpose_b;
    call.batch = shape_.kv_heads;
    call.step_a = a.step;
    call.step_b = b.step;
    call.step_c = c.step;
    return call;
  }

  // Contributions of a group's query heads are added.
  Multiply key_product(const Operand& squares, const Operand& queries, const Operand& keys) const {
    Multiply call = product(squares, true, queries, false, keys);
    call.accumulate = member_ > 0;
    return call;
  }

 private:
  kernels::Tensor head(TensorId id, std::int64_t column, std::int64_t width) const {
    const kernels::Tensor rows = launch_.rows(id, shape_.tokens);
    kernels::Tensor view = rows.slice(sequence_ * rows.stride + column, width);
    view.rows = shape_.seq;
    view.stride = shape_.batch * rows.stride;
    return view;
  }

  const Launch& launch_;
  const Shape& shape_;
  std::int64_t sequence_, member_, group_;
};

Multiply one_call(const Core& core, const Launch& launch, AttentionProduct what) {
  const TensorId left = launch.kernel.reads[0], right = launch.kernel.reads.in(Slot::right),
                 out = launch.kernel.writes[0];
  switch (what) {
    case AttentionProduct::scores:
      return core.product(core.of_queries(left), false, core.of_keys(right), true, core.squares(out));
    case AttentionProduct::query_gradient:
    case AttentionProduct::output:
      return core.product(core.squares(left), false, core.of_keys(right), false, core.of_queries(out));
    case AttentionProduct::key_gradient:
      return core.key_product(core.squares(right), core.of_queries(left), core.of_keys(out));
    case AttentionProduct::probability_gradient:
      return core.product(core.of_queries(left), false, core.of_keys(right), true, core.squares(out));
    case AttentionProduct::value_gradient:
    case AttentionProduct::none:
      break;
  }
  return core.key_product(core.squares(left), core.of_queries(right), core.of_keys(out));
}

}  // namespace

Calls unfused_core_calls(const Launch& launch, AttentionProduct what) {
  const Shape& shape = launch.bound.shape;
  Calls calls;
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    for (std::int64_t member = 0; member < shape.heads / shape.kv_heads; ++member) {
      calls.push_back(one_call(Core(launch, sequence, member), launch, what));
    }
  }
  return calls;
}

}  // namespace rehearse
