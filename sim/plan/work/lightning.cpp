// Lightning attention (Qin et al. 2024, arXiv 2401.04658, algorithm 1; MiniMax-01, arXiv 2501.08313, section
// 2.2): a plain linear attention with one decay a head, in blocks of the sequence. Its parts are those of
// transformers (modular_minimax.py, MiniMaxLightningAttention).
#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr std::int64_t kLightningLaunches = 2,
                       kLightningBackwardLaunches = 3;  // within blocks, and between them

ColumnLinear projection_to(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId input,
                           std::int64_t width) {
  ColumnLinear linear{name, input};
  linear.weight = b.parameter(name + "_weight", Shape::elements(width, shape.hidden));
  linear.outputs = {{name + "_output", width}};
  return linear;
}

// The backward kernels recompute scores and states, so only their inputs stay.
TensorId lightning_scan(BlockBuilder& b, const RecurrentShare& share, TensorId rows) {
  Scan what = share.scan();
  const TensorId output = b.activation("linear_attended", share.per_token(share.values()));
  const TensorId states = b.activation("lightning_states", share.state_elements());
  Kernel there{"lightning_scan", what, {rows, states}, {output, states}};
  there.launches = kLightningLaunches;
  b.forward(there);
  what.backward = true;
  b.undo([&b, what, rows, output, elements = share.state_elements()] {
    const TensorId again = b.scratch_gradient("lightning_states_again", elements),
                   gradients = b.scratch_gradient("lightning_states_gradient", elements);
    Kernel back{"lightning_scan_backward",
                what,
                {b.gradient_of(output), rows, again, gradients},
                {b.new_gradient(rows), again, gradients}};
    back.launches = kLightningBackwardLaunches;
    b.backward_input(back);
  });
  return output;
}

}  // namespace

Branch lightning_attention(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const RecurrentShare share{*model.recurrence, shape.tp, shape.tokens};
  const std::int64_t mixed = 2 * share.keys() + share.values();
  const auto projected = column_linears(b, shape, "linear_inputs",
                                        {projection_to(b, shape, "linear_mixed", input, mixed),
                                         projection_to(b, shape, "linear_gate", input, share.values())});
  b.unmeasured(true);
  const TensorId rows = activate(b, "linear_activation", projected[0], share.per_token(mixed), mixed);
  const TensorId normed =
      normalise(b, "linear_norm", Norm::rms, lightning_scan(b, share, rows), share.values());
  const TensorId gated = activate(b, "linear_gated", {projected[1].front(), normed},
                                  share.per_token(share.values()), share.values());
  b.unmeasured(false);
  return {row_linear(b, shape, "linear_projection", gated, share.values(), shape.tp_comm_fc2_sms)};
}

}  // namespace rehearse
