// Mamba-1 (Gu and Dao 2023, arXiv 2312.00752, section 3): each channel has its own state, which GEMMs do not
// compute. Kernels are those of mamba-ssm (ops/selective_scan_interface.py, selective_scan_fn), called as in
// transformers (modular_jamba.py, JambaMambaMixer.cuda_kernels_forward). The scan is costed by its reads and
// writes. Omitted: its exponentials, one for each element of the states.
#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kSelectiveWide = 4;                    // bytes of states
constexpr std::int64_t kTokensOfSelectiveState = 2048;  // csrc/selective_scan/selective_scan.cpp: n_chunks

class SelectiveScan {
 public:
  SelectiveScan(BlockBuilder& b, const Model& model, const Shape& shape)
      : b_(b), shape_(shape), share_{*model.recurrence, shape.tp, shape.tokens} {}

  Branch run(TensorId input) {
    const std::int64_t inner = share_.values();
    ColumnLinear linear{"scan_inputs", input};
    linear.weight = b_.parameter("scan_inputs_weight", Shape::elements(2 * inner, shape_.hidden));
    linear.outputs = {{"scan_mixed", inner}, {"scan_gate", inner}};
    const std::vector<TensorId> projected = column_linear(b_, shape_, linear);
    b_.unmeasured(true);
    const TensorId rows =
        convolve(b_, share_, {projected[0], share_.of.convolution, true, {{"convolved", inner}}}).front();
    const TensorId scanned = scan(rows, projected[1]);
    b_.unmeasured(false);
    return {row_linear(b_, shape_, "scan_projection", scanned, inner, shape_.tp_comm_fc2_sms)};
  }

 private:
  TensorId inner_norm(const std::string& name, TensorId input, std::int64_t width) {
    return share_.of.inner_norms ? normalise(b_, name, Norm::rms, input, width) : input;
  }

  // Steps and maps of each token.
  std::vector<TensorId> selected(TensorId rows) {
    const std::int64_t rank = share_.of.step_rank, state = share_.of.key_head_dim, inner = share_.values();
    ColumnLinear maps{"scan_maps", rows};
    maps.input_width = inner;
    maps.weight = b_.parameter("scan_maps_weight", Shape::elements(rank + 2 * state, inner));
    maps.outputs = {{"scan_steps_small", rank}, {"scan_input_map", state}, {"scan_output_map", state}};
    const std::vector<TensorId> small = replicated_linear(b_, shape_, maps);
    ColumnLinear steps{"scan_steps", inner_norm("scan_steps_norm", small[0], rank)};
    steps.input_width = rank;
    steps.weight = b_.parameter("scan_steps_weight", Shape::elements(inner, rank));
    steps.bias = b_.parameter("scan_steps_bias", static_cast<double>(inner));
    steps.outputs = {{"scan_steps", inner}};
    return {replicated_linear(b_, shape_, steps).front(), inner_norm("scan_input_norm", small[1], state),
            inner_norm("scan_output_norm", small[2], state)};
  }

  TensorId scan(TensorId rows, TensorId gate) {
    const std::int64_t state = share_.of.key_head_dim, inner = share_.values();
    const std::vector<TensorId> varying = selected(rows);
    const std::vector<TensorId> of_channels = {b_.parameter("decay_log", Shape::elements(inner, state)),
                                               b_.parameter("skip", static_cast<double>(inner))};
    std::vector<TensorId> reads = {rows, gate};
    reads.insert(reads.end(), varying.begin(), varying.end());
    const std::size_t with_gradient = reads.size();
    reads.insert(reads.end(), of_channels.begin(), of_channels.end());
    const TensorId output = b_.activation("scanned", share_.per_token(inner));
    const double kept =
        static_cast<double>((share_.tokens + kTokensOfSelectiveState - 1) / kTokensOfSelectiveState);
    const TensorId states =
        b_.activation("scan_states", 2 * kept * Shape::elements(inner, state), kSelectiveWide);
    b_.forward({"selective_scan", Pointwise::eager, reads, {output, states}});
    b_.undo([&b = b_, reads, with_gradient, of_channels, output, states] {
      std::vector<TensorId> needs = {b.gradient_of(output), states}, makes;
      needs.insert(needs.end(), reads.begin(), reads.end());
      for (std::size_t i = 0; i < with_gradient; ++i) makes.push_back(b.new_gradient(reads[i]));
      const std::vector<TensorId> sums = sums_of(b, of_channels);
      makes.insert(makes.end(), sums.begin(), sums.end());
      b.backward_input({"selective_scan_backward", Pointwise::eager, needs, makes});
      add_sums(b, "scan_weight_gradient", sums, of_channels);
    });
    return output;
  }

  BlockBuilder& b_;
  const Shape& shape_;
  RecurrentShare share_;
};

}  // namespace

Branch selective_scan(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  return SelectiveScan(b, model, shape).run(input);
}

}  // namespace rehearse
