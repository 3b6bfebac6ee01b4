// The gated delta rule in chunks (Yang et al. 2024, arXiv 2412.06464, section 3.3). Within a chunk, the
// scores of keys with keys form a lower triangle L. The inverse of I + L turns keys and values into those of
// a plain linear attention. Kernels and saved tensors are those of flash-linear-attention
// (fla/ops/gated_delta_rule/chunk.py: chunk_gated_delta_rule_fwd and _bwd). transformers calls it
// (modular_qwen3_next.py, Qwen3NextGatedDeltaNet).
//
// Kimi Delta Attention (Kimi Linear, 2025, arXiv 2510.26692, section 3) has a decay for each channel of the
// keys. Decays, and the gate where its rank is not full, are products of two matrices, of which each rank
// holds the first whole (fla/layers/kda.py). Its scan is costed as that of one decay a head.
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kDeltaWide = 4;            // bytes of scores, decays and sums
constexpr std::int64_t kDeltaLaunches = 2;  // chunk_gated_delta_rule_fwd_h and chunk_fwd_o
constexpr std::int64_t kDeltaBackwardLaunches =
    4;  // states again, their gradients, those of values and of the rest

class DeltaRule {
 public:
  DeltaRule(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape)
      : b_(b),
        shape_(shape),
        share_{*model.recurrence, shape.tp, shape.tokens},
        drops_(plan.recompute != Recompute::full) {}

  Branch run(TensorId input) {
    const Projected projected = is_kimi() ? project_apart(input) : project(input);
    const std::int64_t keys = share_.keys(), values = share_.values();
    b_.unmeasured(true);
    const std::vector<TensorId> rows =
        convolve(b_, share_,
                 {projected.mixed,
                  share_.of.convolution,
                  false,
                  {{"linear_query", keys}, {"linear_key", keys}, {"linear_value", values}}});
    step(projected);
    query_ = unit_length("linear_query_norm", rows[0]);
    key_ = unit_length("linear_key_norm", rows[1]);
    value_ = rows[2];
    const TensorId normed = gated_norm(scan(transformed_values()), projected.gate);
    b_.unmeasured(false);
    return {row_linear(b_, shape_, "linear_projection", normed, values, shape_.tp_comm_fc2_sms)};
  }

 private:
  // Queries, keys and values side by side; the gate; decays and writing strengths, each once or twice.
  struct Projected {
    TensorId mixed = -1, gate = -1, steps = -1, decays = -1;
  };

  bool is_kimi() const { return share_.of.kind == RecurrenceKind::kimi_delta; }

  Projected project(TensorId input) {
    const std::int64_t keys = share_.keys(), values = share_.values(), heads = share_.heads();
    ColumnLinear linear{"linear_inputs", input};
    const std::int64_t mixed = 2 * keys + values;
    linear.weight =
        b_.parameter("linear_inputs_weight", Shape::elements(mixed + values + 2 * heads, shape_.hidden));
    linear.outputs = {{"linear_mixed", mixed}, {"linear_gate", values}, {"linear_steps", 2 * heads}};
    const std::vector<TensorId> projected = column_linear(b_, shape_, linear);
    return {projected[0], projected[1], projected[2]};
  }

  Projected project_apart(TensorId input) {
    const std::int64_t mixed = 2 * share_.keys() + share_.values(), values = share_.values();
    ColumnLinear linear{"linear_inputs", input};
    const std::int64_t gate = share_.of.full_rank_gate ? values : 0;
    linear.weight =
        b_.parameter("linear_inputs_weight", Shape::elements(mixed + gate + share_.heads(), shape_.hidden));
    linear.outputs = {{"linear_mixed", mixed}, {"linear_steps", share_.heads()}};
    if (gate > 0) linear.outputs.push_back({"linear_gate", gate});
    const std::vector<TensorId> projected = column_linear(b_, shape_, linear);
    return {projected[0], gate > 0 ? projected[2] : through_rank("linear_gate", input, values), projected[1],
            through_rank("linear_decays", input, share_.keys())};
  }

  // A projection through as many channels as a head has.
  TensorId through_rank(const std::string& name, TensorId input, std::int64_t width) {
    const std::int64_t rank = share_.of.key_head_dim;
    ColumnLinear down{name + "_down", input}, up{name + "_up"};
    down.weight = b_.parameter(name + "_down_weight", Shape::elements(shape_.hidden, rank));
    down.outputs = {{name + "_latent", rank}};
    up.input = replicated_linear(b_, shape_, down).front();
    up.input_width = rank;
    up.weight = b_.parameter(name + "_up_weight", Shape::elements(rank, width));
    up.outputs = {{name, width}};
    return column_linear(b_, shape_, up).front();
  }

  // For each head and token: the decay of the state, and the writing strength.
  void step(const Projected& of) {
    const std::int64_t decays = is_kimi() ? share_.keys() : share_.heads();
    const std::vector<TensorId> weights = {b_.parameter("decay_log", static_cast<double>(share_.heads())),
                                           b_.parameter("step_bias", static_cast<double>(decays))};
    decay_ = b_.activation("linear_decay", share_.per_token(decays), kDeltaWide);
    beta_ = b_.activation("linear_beta", share_.per_token(share_.heads()));
    std::vector<TensorId> reads = {of.steps};
    if (of.decays >= 0) reads.push_back(of.decays);
    std::vector<TensorId> all = reads;
    all.insert(all.end(), weights.begin(), weights.end());
    b_.forward({"linear_step", Pointwise::eager, all, {decay_, beta_}});
    b_.undo([&b = b_, reads, all, weights, decay = decay_, beta = beta_] {
      const std::vector<TensorId> sums = sums_of(b, weights);
      std::vector<TensorId> needs = {b.gradient_of(decay), b.gradient_of(beta)}, makes;
      needs.insert(needs.end(), all.begin(), all.end());
      for (const TensorId tensor : reads) makes.push_back(b.new_gradient(tensor));
      makes.insert(makes.end(), sums.begin(), sums.end());
      b.backward_input({"linear_step_backward", Pointwise::eager, needs, makes});
      add_sums(b, "linear_step_weight_gradient", sums, weights);
    });
  }

  // fla/modules/l2norm.py: the backward kernel reads the output. Each value head gets a copy of its key head
  // (repeat_interleave); that pass is omitted.
  TensorId unit_length(const std::string& name, TensorId input) {
    const TensorId output =
        b_.activation(name + "_output", share_.per_token(share_.heads() * share_.of.key_head_dim));
    b_.forward({name, Pointwise::plain_norm, {input}, {output}});
    b_.undo([&b = b_, name, input, output] {
      b.backward_input({name + "_backward",
                        Pointwise::plain_norm_backward,
                        {b.gradient_of(output), output},
                        {b.new_gradient(input)}});
    });
    return output;
  }

  // A GEMM of m x n with depth k for each head and chunk. Both operands have gradients, and for scores the
  // writing strengths too.
  TensorId multiply(const std::string& name, TensorId left, TensorId right, std::int64_t n, std::int64_t k,
                    TensorId output, TensorId scales = -1) {
    const std::int64_t chunk = share_.of.chunk, batch = share_.heads() * share_.chunks();
    std::vector<TensorId> reads = {left, right};
    if (scales >= 0) reads.push_back(scales);
    b_.forward({name, Gemm{chunk, n, k, batch}, reads, {output}});
    b_.undo([&b = b_, name, left, right, n, k, chunk, batch, output, scales] {
      const TensorId gradient = b.gradient_of(output);
      std::vector<TensorId> makes = {b.new_gradient(left)};
      if (scales >= 0) makes.push_back(b.new_gradient(scales));
      b.backward_input({name + "_left_gradient", Gemm{chunk, k, n, batch}, {gradient, right}, makes});
      b.backward_input(
          {name + "_right_gradient", Gemm{k, n, chunk, batch}, {left, gradient}, {b.new_gradient(right)}});
    });
    return output;
  }

  // Values minus those that the state has for their keys. GEMMs with the inverse are recomputed.
  TensorId transformed_values() {
    const Recurrence& of = share_.of;
    const std::int64_t heads = share_.heads(), chunk = of.chunk;
    const TensorId scores =
        multiply("delta_scores", key_, key_, chunk, of.key_head_dim,
                 b_.activation("delta_scores", share_.per_token(heads * chunk), kDeltaWide), beta_);
    const TensorId inverse = b_.activation("delta_inverse", share_.per_token(heads * chunk));
    b_.forward({"delta_inverse", Pointwise::eager, {scores}, {inverse}});
    b_.undo([&b = b_, scores, inverse] {
      b.backward_input({"delta_inverse_backward",
                        Pointwise::eager,
                        {b.gradient_of(inverse), inverse},
                        {b.new_gradient(scores, kDeltaWide)}});
    });
    const std::size_t first = b_.forward_kernels();
    const TensorId keys = multiply("delta_keys", inverse, key_, of.key_head_dim, chunk,
                                   b_.activation("delta_keys", share_.per_token(heads * of.key_head_dim)));
    const TensorId values = multiply("delta_values", inverse, value_, of.value_head_dim, chunk,
                                     b_.activation("delta_values", share_.per_token(share_.values())));
    const TensorId read = read_states(keys, values);
    if (drops_) b_.rerun_from(first);
    return read;
  }

  // Gradients of the states themselves belong to the scan.
  TensorId read_states(TensorId keys, TensorId values) {
    const Recurrence& of = share_.of;
    const std::int64_t chunk = of.chunk, batch = share_.heads() * share_.chunks();
    const std::int64_t depth = of.key_head_dim, width = of.value_head_dim;
    const TensorId read = b_.activation("delta_values_read", share_.per_token(share_.values()));
    b_.forward({"delta_state", Gemm{chunk, width, depth, batch}, {keys, values}, {read}});
    b_.undo([&b = b_, keys, values, read, chunk, batch, depth, width, states = share_.state_elements()] {
      const TensorId gradient = b.gradient_of(read);
      const TensorId again = b.scratch_gradient("delta_states_again", states);
      b.backward_input({"delta_state_left_gradient",
                        Gemm{chunk, depth, width, batch},
                        {gradient},
                        {b.new_gradient(keys), again}});
      b.backward_input({"delta_state_right_gradient",
                        Gemm{depth, width, chunk, batch},
                        {keys, gradient},
                        {b.scratch_gradient("delta_states_gradient", states)}});
      b.pass_gradient(read, values);
    });
    return read;
  }

  TensorId scan(TensorId values) {
    Scan what = share_.scan();
    const TensorId output = b_.activation("linear_attended", share_.per_token(share_.values()));
    const TensorId states = b_.activation("delta_states", share_.state_elements());
    Kernel there{"delta_scan", what, {query_, key_, values, decay_, states}, {output, states}};
    there.launches = kDeltaLaunches;
    b_.forward(there);
    what.backward = true;
    b_.undo([&b = b_, what, query = query_, key = key_, values, decay = decay_, output,
             elements = share_.state_elements()] {
      const TensorId again = b.scratch_gradient("delta_scan_states", elements),
                     gradients = b.scratch_gradient("delta_scan_states_gradient", elements);
      Kernel back{"delta_scan_backward",
                  what,
                  {b.gradient_of(output), query, key, values, decay, again, gradients},
                  {b.new_gradient(query), b.new_gradient(key), b.new_gradient(values),
                   b.new_gradient(decay, kDeltaWide), again, gradients}};
      back.launches = kDeltaBackwardLaunches;
      b.backward_input(back);
    });
    return output;
  }

  // fla/modules/fused_norm_gate.py: a norm of each head, times SiLU of the gate.
  TensorId gated_norm(TensorId input, TensorId gate) {
    const TensorId weight = b_.parameter("linear_norm_weight", static_cast<double>(share_.of.value_head_dim));
    const TensorId output = b_.activation("linear_norm_output", b_[input].elements);
    b_.forward({"linear_norm", Pointwise::norm, {input, gate, weight}, {output}});
    b_.undo([&b = b_, input, gate, weight, output] {
      const TensorId gradient = b.gradient_of(output);
      b.backward_input({"linear_norm_backward",
                        Pointwise::norm_backward,
                        {gradient, input, gate, weight},
                        {b.new_gradient(input), b.new_gradient(gate)}});
      b.backward_weight({"linear_norm_weight_gradient",
                         Pointwise::norm_weight_gradient,
                         {gradient, input},
                         {b.parameter_gradient(weight)}});
    });
    return output;
  }

  BlockBuilder& b_;
  const Shape& shape_;
  RecurrentShare share_;
  bool drops_;
  TensorId query_ = -1, key_ = -1, value_ = -1, decay_ = -1, beta_ = -1;
};

}  // namespace

Branch delta_rule(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape, TensorId input) {
  return DeltaRule(b, model, plan, shape).run(input);
}

}  // namespace rehearse
