// Layers between which rows have several copies (hyper-connections: Zhu et al. 2024, arXiv 2409.19606; as in
// DeepSeek-V4: transformers, modular_deepseek_v4.py, DeepseekV4HyperConnection). A GEMM of all copies of a
// row gives three kinds of weights: those of the mixture that a branch reads, those of its output in each
// copy, and those of each copy in each other.
#include "plan/work/compressed.h"
#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"

namespace rehearse {

namespace {

constexpr double kMixBytes = 4;  // weights are fp32

struct Mixed {
  TensorId rows = -1;   // the branch's input
  TensorId mixes = -1;  // weights of its output and of the copies
};

class Streams {
 public:
  Streams(BlockBuilder& b, const Model& model)
      : b_(b), shape_(b.shape()), copies_(model.streams), hidden_(model.hidden) {}

  // Before a branch, the same weights also spread its output. Before the head, there are only those of the
  // mixture.
  Mixed collapse(const std::string& name, TensorId streams, bool before_branch) {
    const std::int64_t scores = before_branch ? (2 + copies_) * copies_ : copies_;
    const std::int64_t further = before_branch ? scores + 3 : scores + 1;  // biases, and a scale of each kind
    Gemm gemm{shape_.rows, scores, copies_ * hidden_};
    gemm.of_model = shape_.sequence_parallel ? 1 : 1.0 / static_cast<double>(shape_.tp);
    const std::vector<TensorId> weight = {
        b_.parameter(name + "_weight", Shape::elements(scores, copies_ * hidden_)),
        b_.parameter(name + "_scales", static_cast<double>(further))};
    const Mixed mixed{b_.activation(name + "_rows", shape_.row_elements()),
                      b_.activation(name + "_mixes", Shape::elements(shape_.rows, scores), kMixBytes)};
    b_.forward({name + "_scores", gemm, {streams, {weight[0], Slot::weight}}, {mixed.mixes}});
    b_.forward({name, Pointwise::eager, {streams, mixed.mixes, weight[1]}, {mixed.rows}});
    b_.undo([&b = b_, name, gemm, weight, streams, mixed, before_branch] {
      const std::vector<TensorId> sums = sums_of(b, {weight[1]});
      const TensorId of_rows = b.gradient_of(mixed.rows);
      const TensorId part = b.scratch_gradient(name + "_mixes_part", b[mixed.mixes].elements, kMixBytes);
      KernelTensors needs = {of_rows, streams, mixed.mixes, weight[1]};
      if (before_branch) needs.push_back(b.gradient_of(mixed.mixes));
      b.backward_input(
          {name + "_backward", Pointwise::eager, needs, {b.new_gradient(streams), part, sums[0]}});
      Gemm of_input = b.input_gradient({gemm.m, gemm.k, gemm.n}),
           of_weight = b.weight_gradient({gemm.n, gemm.k, gemm.m});
      of_input.of_model = of_weight.of_model = gemm.of_model;
      b.backward_input({name + "_scores_input_gradient",
                        of_input,
                        {part, {weight[0], Slot::weight}},
                        {b.new_gradient(streams)}});
      b.backward_weight({name + "_scores_weight_gradient",
                         of_weight,
                         {part, {streams, Slot::input}},
                         {b.parameter_gradient(weight[0])}});
      add_sums(b, name + "_scales_gradient", sums, {weight[1]});
    });
    return mixed;
  }

  TensorId expand(const std::string& name, TensorId streams, const Mixed& mixed, TensorId branch) {
    const TensorId output = b_.activation(name + "_streams", b_[streams].elements);
    b_.forward({name + "_expand", Pointwise::eager, {branch, streams, mixed.mixes}, {output}});
    b_.undo([&b = b_, name, streams, mixed, branch, output] {
      b.backward_input(
          {name + "_expand_backward",
           Pointwise::eager,
           {b.gradient_of(output), branch, streams, mixed.mixes},
           {b.new_gradient(branch), b.new_gradient(streams), b.new_gradient(mixed.mixes, kMixBytes)}});
    });
    return output;
  }

 private:
  BlockBuilder& b_;
  const Shape& shape_;
  std::int64_t copies_, hidden_;
};

}  // namespace

TensorId spread_streams(BlockBuilder& b, const Model& model, TensorId rows) {
  const TensorId output = b.activation("streams", static_cast<double>(model.streams) * b[rows].elements);
  b.forward({"spread_streams", Pointwise::eager, {rows}, {output}});
  b.undo([&b, rows, output] {
    b.backward_input(
        {"spread_streams_backward", Pointwise::eager, {b.gradient_of(output)}, {b.new_gradient(rows)}});
  });
  return output;
}

TensorId join_streams(BlockBuilder& b, const Model& model, TensorId streams) {
  b.unmeasured(true);
  const TensorId rows = Streams(b, model).collapse("final_mix", streams, false).rows;
  b.unmeasured(false);
  return rows;
}

TensorId stream_layer(BlockBuilder& b, const Model& model, const Plan& plan, LayerSort sort, TensorId input) {
  Streams streams(b, model);
  const auto branch = [&](const std::string& name, TensorId from, const auto& run) {
    b.unmeasured(true);
    const Mixed mixed = streams.collapse(name + "_mix", from, true);
    b.unmeasured(false);
    const TensorId made = run(normalise(b, name + "_norm", model.norm, mixed.rows, model.hidden));
    b.unmeasured(true);
    const TensorId output = streams.expand(name, from, mixed, made);
    b.unmeasured(false);
    return output;
  };
  b.enter(LayerPart::attention);
  const TensorId middle = branch("attention", input, [&](TensorId rows) {
    return compressed_attention(b, model, plan, b.shape(), rows).output;
  });
  b.enter(sort.sparse ? LayerPart::router : LayerPart::mlp);
  return branch("mlp", middle, [&](TensorId rows) {
    return sort.sparse
               ? experts(b, model, plan, b.shape(), rows).output
               : feed_forward(b, model, b.shape(), {"mlp", b.shape().ffn, model.mlp_bias}, rows).output;
  });
}

}  // namespace rehearse
