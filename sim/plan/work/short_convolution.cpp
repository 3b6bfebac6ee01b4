// LFM2's gated short convolution, with the parts of transformers (modular_lfm2.py, Lfm2ShortConv). One of
// three projections gates the input of the convolution, another its output.
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

Branch short_convolution(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  const RecurrentShare share{*model.recurrence, shape.tp, shape.tokens};
  const std::int64_t width = share.values();
  ColumnLinear linear{"convolution_inputs", input};
  linear.weight = b.parameter("convolution_inputs_weight", Shape::elements(3 * width, shape.hidden));
  linear.outputs = {{"gate_before", width}, {"gate_after", width}, {"convolution_input", width}};
  const std::vector<TensorId> projected = column_linear(b, shape, linear);
  b.unmeasured(true);
  const double elements = share.per_token(width);
  const TensorId gated = activate(b, "gated_before", {projected[0], projected[2]}, elements, width);
  const TensorId convolved =
      convolve(b, share, {gated, share.of.convolution, false, {{"convolved", width}}}).front();
  const TensorId output = activate(b, "gated_after", {projected[1], convolved}, elements, width);
  b.unmeasured(false);
  return {row_linear(b, shape, "convolution_projection", output, width, shape.tp_comm_fc2_sms)};
}

}  // namespace rehearse
