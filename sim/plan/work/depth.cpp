// Attention over depth (Kimi K3, attn_res_block_size). The input of a branch is a sum of the rows and of the
// sums after every so many layers. Its weights are a softmax of one score for each, from a norm and a vector.
//
// The sums are in memory once for all layers that read them. So blocks of layers count the bytes that they
// move, not the stored sums. On average, layers read half of all sums.
#include "plan/work/blocks.h"
#include "plan/work/recurrence.h"

namespace rehearse {

TensorId sum_depths(BlockBuilder& b, const Model& model, const std::string& name, TensorId rows) {
  b.unmeasured(true);
  const auto width = static_cast<double>(model.hidden);
  const double elements = b[rows].elements, sums = static_cast<double>(model.depth_sums()) * elements;
  const std::vector<TensorId> weights = {b.parameter(name + "_norm_weight", width),
                                         b.parameter(name + "_score_weight", width)};
  const TensorId kept = b.tied_parameter(name + "_sums", sums);
  const TensorId output = b.activation(name + "_rows", elements);
  b.forward({name, Pointwise::eager, {rows, kept, weights[0], weights[1]}, {output}});
  b.undo([&b, name, rows, kept, weights, output, sums] {
    const std::vector<TensorId> of_weights = sums_of(b, weights);
    b.backward_input({name + "_backward",
                      Pointwise::eager,
                      {b.gradient_of(output), rows, kept, weights[0], weights[1]},
                      {b.new_gradient(rows), b.scratch_gradient(name + "_sums_gradient", sums), of_weights[0],
                       of_weights[1]}});
    add_sums(b, name + "_weight_gradient", of_weights, weights);
  });
  b.unmeasured(false);
  return output;
}

}  // namespace rehearse
