#include "plan/work/loss.h"

#include "plan/frameworks/traits.h"

namespace rehearse {

namespace {

constexpr double kLogitBytes = 4;

bool is_of_whole_rows(const Plan& plan, const Shape& shape) {
  return (traits(plan).dtensor && shape.tp == 1) || gathers_logits(plan);
}

// Reduces one number a token over all ranks of the vocabulary.
TensorId over_vocabulary(BlockBuilder& b, const Shape& shape, TensorId partial,
                         Exchange exchange = Exchange::plain) {
  if (shape.tp == 1) return partial;
  const std::string name = b[partial].name;
  const TensorId whole = b.activation(name + "_reduced", b[partial].elements, kLogitBytes);
  b.forward({name + "_all_reduce",
             Collective{.op = CollectiveOp::all_reduce,
                        .group = CommGroup::tensor,
                        .bytes = b[partial].bytes(),
                        .exchange = exchange},
             {partial},
             {whole}});
  return whole;
}

// Softmax and loss of logits that are split over the vocabulary. The maximum, the sum of exponentials and the
// target's logit of each token are reduced over the ranks. The backward kernel reads the probabilities.
// 16-bit logits are copied to fp32, and their gradient to 16 bits. The bytes a logit depend on fusion:
// - 40, where the kernels between two reductions are compiled (Megatron-LM,
//   core/fusions/fused_cross_entropy.py). On H100 it takes the time of 50 bytes at the rate of a triad
//   (linkedin/Liger-Kernel, megatron_cross_entropy).
// - 52, where each operation is a kernel (core/tensor_parallel/cross_entropy.py, which works in place where
//   it can). It takes the time of 59.
// - 76, under PyTorch's loss_parallel (torch/distributed/tensor/parallel/loss.py), where four fp32 tensors
//   are live at once in the backward pass.
class CrossEntropy {
 public:
  CrossEntropy(BlockBuilder& b, const Shape& shape, TensorId logits)
      : b_(b), shape_(shape), logits_(logits), elements_(b[logits].elements) {}

  void fused() {
    const TensorId wide = widened(), largest = maximum(wide);
    forward("exponentials", Pointwise::loss_exponentials,
            {wide, {labels_, Slot::labels}, {largest, Slot::maximum}},
            {exponentials_, {target_, Slot::target}, {sum_, Slot::exponential_sum}});
    loss();
    undo();
  }

  void unfused() {
    const TensorId wide = widened(), shifted = per_logit("shifted");
    const TensorId largest = maximum(wide);
    forward("shift", Pointwise::loss_shift, {wide, {largest, Slot::maximum}}, {shifted});
    forward("exponentials", Pointwise::loss_exponentials, {shifted, {labels_, Slot::labels}},
            {exponentials_, {target_, Slot::target}});
    forward("sum", Pointwise::loss_sum, {exponentials_}, {{sum_, Slot::exponential_sum}});
    loss();
    undo();
  }

  // Its backward pass computes the target's gradient, the exponentials and their sum, and then scales that
  // sum.
  void loss_parallel() {
    unfused();
    b_.undo([b = &b_, probabilities = probabilities_, n = elements_] {
      const auto scratch = [b, n](const char* name) { return b->scratch_gradient(name, n, kLogitBytes); };
      const TensorId of_target = scratch("target_gradient"), again = scratch("exponentials_again"),
                     both = scratch("target_and_exponentials");
      constexpr Pointwise kPart = Pointwise::loss_part;
      b->backward_input({"loss_part_of_target", kPart, {}, {of_target}});
      b->backward_input({"loss_part_of_exponentials", kPart, {probabilities}, {again}});
      b->backward_input({"loss_parts_added_up", kPart, {of_target, again}, {both}});
    });
  }

 private:
  TensorId per_token(const char* name) {
    return b_.activation(name, static_cast<double>(shape_.tokens), kLogitBytes);
  }
  TensorId per_logit(const char* name) { return b_.activation(name, elements_, kLogitBytes); }
  void forward(const char* name, Pointwise type, KernelTensors reads, KernelTensors writes) {
    b_.forward({name, type, std::move(reads), std::move(writes)});
  }

  bool are_wide() const { return b_[logits_].element_bytes == kLogitBytes; }
  TensorId widened() {
    if (are_wide()) return logits_;
    const TensorId wide = per_logit("logits_fp32");
    forward("logits_cast", Pointwise::widen_logits, {logits_}, {wide});
    return wide;
  }

  TensorId maximum(TensorId logits) {
    const TensorId own = per_token("maximum");
    forward("maximum", Pointwise::loss_maximum, {logits}, {{own, Slot::maximum}});
    return over_vocabulary(b_, shape_, own, Exchange::maximum);
  }
  void loss() {
    const TensorId target = over_vocabulary(b_, shape_, target_), sum = over_vocabulary(b_, shape_, sum_);
    forward("loss", Pointwise::loss, {exponentials_, {target, Slot::target}, {sum, Slot::exponential_sum}},
            {probabilities_, {per_token("loss"), Slot::loss}});
  }

  void undo() {
    b_.undo([b = &b_, logits = logits_, labels = labels_, probabilities = probabilities_, n = elements_,
             wide = are_wide()] {
      const auto backward = [b](const char* name, Pointwise type, KernelTensors reads, TensorId writes) {
        b->backward_input({name, type, std::move(reads), {writes}});
      };
      const TensorId gradient =
          wide ? b->new_gradient(logits) : b->scratch_gradient("logits_fp32_gradient", n, kLogitBytes);
      backward("loss_backward", Pointwise::loss_backward, {probabilities, {labels, Slot::labels}}, gradient);
      if (!wide)
        backward("logits_cast_backward", Pointwise::narrow_logits, {gradient}, b->new_gradient(logits));
    });
  }

  BlockBuilder& b_;
  const Shape& shape_;
  TensorId logits_;
  double elements_;
  TensorId labels_ = b_.batch("labels", static_cast<double>(shape_.tokens));
  TensorId target_ = per_token("target"), sum_ = per_token("sum");
  TensorId exponentials_ = per_logit("exponentials"), probabilities_ = per_logit("token_probabilities");
};

// PyTorch's cross-entropy of whole rows, in two forms:
// - Operation by operation (F.cross_entropy of fp32 logits, as in torchtitan and Hugging Face's models):
//   log_softmax reads rows too long for shared memory three times in the forward pass, and each tensor twice
//   in the backward pass (ATen, native/cuda/SoftMax.cu). 12 bytes a logit are live at once in the backward
//   pass. The likelihood itself reads one number a token.
// - Fused (compiled, or flash-attention's CrossEntropyLoss): the logits are read for their maximum, for their
//   sum, and for the gradient.
class TokenLoss {
 public:
  TokenLoss(BlockBuilder& b, const Shape& shape, TensorId logits)
      : b_(b),
        tokens_(static_cast<double>(shape.tokens)),
        logits_(logits),
        labels_(b.batch("labels", tokens_)) {}

  void fused() {
    const TensorId log_sum = per_token("log_sum");
    b_.forward({"token_loss",
                Pointwise::token_loss,
                {logits_, logits_, {labels_, Slot::labels}},
                {{log_sum, Slot::log_sum_exp}, {per_token("loss"), Slot::loss}}});
    b_.undo([b = &b_, logits = logits_, labels = labels_, log_sum] {
      b->backward_input({"token_loss_backward",
                         Pointwise::token_loss_backward,
                         {logits, {labels, Slot::labels}, {log_sum, Slot::log_sum_exp}},
                         {b->new_gradient(logits)}});
    });
  }

  void unfused(bool with_accuracy) {
    const double n = b_[logits_].elements;
    const TensorId wide = b_.activation("logits_fp32", n, kLogitBytes),
                   log_probabilities = b_.activation("log_probabilities", n, kLogitBytes);
    b_.forward({"logits_cast", Pointwise::widen_logits, {logits_}, {wide}});
    if (with_accuracy)
      b_.forward({"accuracy", Pointwise::cross_entropy, {wide, labels_}, {per_token("accuracy")}});
    b_.forward({"log_softmax",
                Pointwise::log_softmax,
                {wide, wide, wide, {labels_, Slot::labels}},
                {log_probabilities, {per_token("loss"), Slot::loss}}});
    b_.undo([b = &b_, logits = logits_, labels = labels_, log_probabilities, n] {
      const auto backward = [b](const char* name, Pointwise type, KernelTensors reads, TensorId writes) {
        b->backward_input({name, type, std::move(reads), {writes}});
        return writes;
      };
      const TensorId of_likelihood =
          backward("likelihood_backward", Pointwise::likelihood_backward, {{labels, Slot::labels}},
                   b->scratch_gradient("log_probabilities_gradient", n, kLogitBytes));
      const TensorId of_wide = backward("log_softmax_backward", Pointwise::log_softmax_backward,
                                        {of_likelihood, log_probabilities, of_likelihood, log_probabilities},
                                        b->scratch_gradient("logits_fp32_gradient", n, kLogitBytes));
      backward("logits_cast_backward", Pointwise::narrow_logits, {of_wide}, b->new_gradient(logits));
    });
  }

 private:
  TensorId per_token(const char* name) { return b_.activation(name, tokens_, kLogitBytes); }

  BlockBuilder& b_;
  double tokens_;
  TensorId logits_, labels_;
};

// Transformer Engine's loss (pytorch/triton/cross_entropy.py). One kernel reads the logits for each token's
// maximum, sum and target, and ranks gather all three. A second kernel computes loss and gradient. The
// backward pass multiplies the gradient by the loss's and casts it. 22 bytes a logit of 16 bits. Before
// release 2.18 (pull request 3193) the gradient replaced the logits in place: 10 bytes.
class FusedByTransformerEngine {
 public:
  FusedByTransformerEngine(BlockBuilder& b, const Shape& shape, TensorId logits)
      : b_(b), shape_(shape), logits_(logits), tokens_(static_cast<double>(shape.tokens)) {}

  void in_place() {
    const TensorId statistics = gathered(softmax_statistics());
    b_.forward({"loss_in_place",
                Pointwise::cross_entropy,
                {logits_, logits_, labels_, statistics},
                {b_.activation("loss", tokens_, kLogitBytes)}});
    b_.undo([&b = b_, logits = logits_] {
      scale(b, logits);
      b.gradient_was_made(logits, logits);
    });
  }

  void in_fp32() {
    const TensorId statistics = gathered(softmax_statistics());
    const TensorId made = b_.activation("logits_slope", b_[logits_].elements, kLogitBytes);
    b_.forward({"loss_and_slope",
                Pointwise::cross_entropy,
                {logits_, labels_, statistics},
                {b_.activation("loss", tokens_, kLogitBytes), made}});
    b_.undo([&b = b_, logits = logits_, made] {
      scale(b, made);
      if (b[logits].element_bytes == kLogitBytes) return b.gradient_was_made(logits, made);
      b.backward_input({"loss_narrow", Pointwise::cross_entropy_backward, {made}, {b.new_gradient(logits)}});
    });
  }

 private:
  TensorId softmax_statistics() {
    const TensorId statistics = b_.activation("statistics", kStatistics * tokens_, kLogitBytes);
    b_.forward({"online_softmax", Pointwise::cross_entropy, {logits_, labels_}, {statistics}});
    return statistics;
  }

  TensorId gathered(TensorId statistics) {
    if (shape_.tp == 1) return statistics;
    const double all = b_[statistics].elements * static_cast<double>(shape_.tp);
    const TensorId whole = b_.activation("statistics_gathered", all, kLogitBytes);
    const Collective gather{CollectiveOp::all_gather, CommGroup::tensor, b_[whole].bytes()};
    b_.forward({"statistics_all_gather", gather, {statistics}, {whole}});
    return whole;
  }

  // Reads the gradient and writes it in place.
  static void scale(BlockBuilder& b, TensorId made) {
    b.backward_input({"loss_scale", Pointwise::cross_entropy_backward, {made, made}, {}});
  }

  static constexpr double kStatistics = 3;  // of a token

  BlockBuilder& b_;
  const Shape& shape_;
  TensorId logits_;
  double tokens_;
  TensorId labels_ = b_.batch("labels", tokens_);
};

}  // namespace

bool gathers_logits(const Plan& plan) {
  return traits(plan).gathers_logits;
}

void add_loss(BlockBuilder& builder, const Plan& plan, const Shape& shape, TensorId logits) {
  if (is_of_whole_rows(plan, shape)) {
    TokenLoss loss(builder, shape, logits);
    return plan.fused_cross_entropy ? loss.fused() : loss.unfused(gathers_logits(plan));
  }
  if (plan.loss_fusion == LossFusion::te) return FusedByTransformerEngine(builder, shape, logits).in_fp32();
  if (plan.loss_fusion == LossFusion::te_in_place)
    return FusedByTransformerEngine(builder, shape, logits).in_place();
  CrossEntropy loss(builder, shape, logits);
  if (plan.fused_cross_entropy) return loss.fused();
  traits(plan).dtensor ? loss.loss_parallel() : loss.unfused();
}

}  // namespace rehearse
