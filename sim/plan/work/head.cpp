#include "plan/stages.h"
#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

constexpr double kLogitBytes = 4;

// A number a token, made equal on all ranks of the vocabulary.
TensorId over_vocabulary(BlockBuilder& b, const Shape& shape, TensorId partial) {
  if (shape.tp == 1) return partial;
  const std::string name = b[partial].name;
  const TensorId whole = b.activation(name + "_reduced", b[partial].elements, kLogitBytes);
  b.forward({name + "_all_reduce",
             Collective{CollectiveOp::all_reduce, Axis::tp, b[partial].bytes()},
             {partial},
             {whole}});
  return whole;
}

// Softmax and loss of logits that are split over the vocabulary: the maximum, the sum of exponentials and the
// target's logit of each token are reduced over the ranks. The backward kernel reads the probabilities. Where
// nothing is fused each operation is a kernel on logits of the training precision: 52 bytes a logit
// (Megatron-LM, core/tensor_parallel/cross_entropy.py, which works in place where it can).
class CrossEntropy {
 public:
  CrossEntropy(BlockBuilder& b, const Shape& shape, TensorId logits)
      : b_(b), shape_(shape), logits_(logits), elements_(b[logits].elements) {}

  void fused() {
    const TensorId largest = maximum(logits_);
    forward("exponentials", {logits_, labels_, largest}, {exponentials_, target_, sum_});
    loss();
    b_.undo([b = &b_, logits = logits_, labels = labels_, probabilities = probabilities_] {
      b->backward_input({"loss_backward",
                         Pointwise::cross_entropy_backward,
                         {probabilities, labels},
                         {b->new_gradient(logits)}});
    });
  }

  void unfused() {
    const TensorId wide = per_logit("logits_fp32"), shifted = per_logit("shifted");
    forward("logits_cast", {logits_}, {wide});
    const TensorId largest = maximum(wide);
    forward("shift", {wide, largest}, {shifted});
    forward("exponentials", {shifted, labels_}, {exponentials_, target_});
    forward("sum", {exponentials_}, {sum_});
    loss();
    b_.undo([b = &b_, logits = logits_, labels = labels_, probabilities = probabilities_, n = elements_] {
      const TensorId gradient = b->scratch_gradient("logits_fp32_gradient", n, kLogitBytes);
      b->backward_input(
          {"loss_backward", Pointwise::cross_entropy_backward, {probabilities, labels}, {gradient}});
      b->backward_input(
          {"logits_cast_backward", Pointwise::cross_entropy_backward, {gradient}, {b->new_gradient(logits)}});
    });
  }

 private:
  TensorId per_token(const char* name) {
    return b_.activation(name, static_cast<double>(shape_.tokens), kLogitBytes);
  }
  TensorId per_logit(const char* name) { return b_.activation(name, elements_, kLogitBytes); }
  void forward(const char* name, std::vector<TensorId> reads, std::vector<TensorId> writes) {
    b_.forward({name, Pointwise::cross_entropy, std::move(reads), std::move(writes)});
  }

  TensorId maximum(TensorId logits) {
    const TensorId own = per_token("maximum");
    forward("maximum", {logits}, {own});
    return over_vocabulary(b_, shape_, own);
  }
  void loss() {
    const TensorId target = over_vocabulary(b_, shape_, target_), sum = over_vocabulary(b_, shape_, sum_);
    forward("loss", {exponentials_, target, sum}, {probabilities_, per_token("loss")});
  }

  BlockBuilder& b_;
  const Shape& shape_;
  TensorId logits_;
  double elements_;
  TensorId labels_ = b_.batch("labels", static_cast<double>(shape_.tokens));
  TensorId target_ = per_token("target"), sum_ = per_token("sum");
  TensorId exponentials_ = per_logit("exponentials"), probabilities_ = per_logit("probabilities");
};

}  // namespace

Block head_block(const Model& model, const Plan& plan) {
  Shape shape = shape_on_one_rank(model, plan);
  shape.tp_comm_overlap = false;  // the output layer has no user buffers
  shape.fp8 = false;              // and multiplies in the precision of the activations
  BlockBuilder b("head", shape);
  const TensorId input = b.input("input", shape.row_elements());
  ColumnLinear head{"logits", normalise(b, "final_norm", model.norm, input, shape.hidden)};
  const double elements = Shape::elements(shape.vocab, shape.hidden);
  const bool table_is_here = model.tied_embeddings && pipeline_rank_of(plan.stages() - 1, plan) == 0;
  head.weight =
      table_is_here ? b.tied_parameter("word_table", elements) : b.parameter("head_weight", elements);
  head.outputs = {{"logits", shape.vocab, plan.fused_cross_entropy ? kLogitBytes : 0}};
  const TensorId logits = column_linear(b, shape, head).front();
  CrossEntropy loss(b, shape, logits);
  plan.fused_cross_entropy ? loss.fused() : loss.unfused();
  return b.finish();
}

}  // namespace rehearse
