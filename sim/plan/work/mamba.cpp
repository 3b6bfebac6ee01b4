#include "plan/work/attention_core.h"
#include "plan/work/pointwise.h"
#include "plan/work/recurrence.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

// Triton kernels of mamba-ssm's scan (ops/triton/ssd_combined.py).
constexpr std::int64_t kForwardLaunches = 5, kBackwardLaunches = 15;
constexpr double kStateBytes = 4;  // of the states at the ends of chunks
constexpr double kSumBytes = 4;    // of gradients of parameters, over the tokens of a microbatch

// One rank's share of a state space: its heads and their groups. Context-parallel ranks divide those among
// them while they hold whole sequences.
struct Space {
  const StateSpace& whole;
  std::int64_t tp = 1, cp = 1;

  std::int64_t heads() const { return whole.heads / tp; }
  std::int64_t inner() const { return heads() * whole.head_dim; }
  std::int64_t maps() const { return whole.maps() / tp; }
  std::int64_t groups() const { return whole.groups / tp; }
  // Convolved channels: the input, and the maps to states and from them.
  std::vector<std::int64_t> channels() const { return {inner(), maps() / 2, maps() / 2}; }

  Scan scan(std::int64_t tokens) const {
    return {tokens * cp, heads() / cp, whole.head_dim, whole.groups / (tp * cp), whole.state, whole.chunk};
  }
};

// Gate, input with its maps, and steps of each token, all side by side.
struct Projected {
  TensorId gate = -1, input = -1, steps = -1;
  KernelTensors all() const { return {gate, {input, Slot::channels}, steps}; }
};

// The convolution of `input` and its maps, which runs twice.
struct Convolution {
  TensorId input = -1, weight = -1, bias = -1, output = -1;
  Kernel into(const std::string& name, TensorId to) const {
    return {name, Pointwise::convolution, {input, weight, bias}, {to}};
  }
};

// Tensors that a pass copies: read and written once each.
Kernel copied(const std::string& name, const std::vector<TensorId>& tensors) {
  Kernel kernel{name, Pointwise::rearrange, tensors, {}};
  kernel.reads.append(tensors);
  return kernel;
}

class Mixer {
 public:
  Mixer(BlockBuilder& b, const Model& model, const Shape& shape)
      : b_(b), shape_(shape), space_{*model.state_space, shape.tp, shape.cp} {}

  Branch run(TensorId input) {
    Projected projected = project(input);
    if (shape_.cp > 1) projected = whole_sequences(projected);
    TensorId scanned = scan(projected, convolve(projected.input));
    if (shape_.cp > 1) scanned = own_tokens(scanned);
    if (several()) b_.forward(copied("scanned_in_rows", {scanned}));
    const TensorId normed = space_.whole.norm ? normalise(b_, "mamba_norm", Norm::rms, scanned,
                                                          space_.inner(), false, space_.groups())
                                              : scanned;
    return {row_linear(b_, shape_, "mamba_projection", normed, space_.inner(), shape_.tp_comm_fc2_sms)};
  }

 private:
  // mamba_mixer.py orders tokens before sequences outside, and sequences before tokens inside. For one
  // sequence both are equal.
  bool several() const { return shape_.batch > 1; }

  Projected project(TensorId input) {
    const std::int64_t inner = space_.inner(), scanned = inner + space_.maps(), heads = space_.heads();
    ColumnLinear linear{"mamba_inputs", input};
    linear.weight =
        b_.parameter("mamba_inputs_weight", Shape::elements(inner + scanned + heads, shape_.hidden));
    linear.outputs = {
        {"mamba_gate", inner}, {"mamba_input", scanned, 0, space_.channels()}, {"mamba_steps", heads}};
    const std::vector<TensorId> outputs = column_linear(b_, shape_, linear);
    if (several()) {
      b_.forward(copied("mamba_inputs_in_sequences", outputs));
      b_.undo([&b = b_, outputs] {
        std::vector<TensorId> gradients;
        for (const TensorId output : outputs) gradients.push_back(b.gradient_of(output));
        b.backward_input(copied("mamba_inputs_gradient", gradients));
      });
    }
    return {outputs[0], outputs[1], outputs[2]};
  }

  // Before the convolution, each rank exchanges tokens for heads, and their chunks are put in order. After
  // the scan it gets its tokens back (ssm/mamba_context_parallel.py).
  Projected whole_sequences(const Projected& own) {
    const std::vector<TensorId> received =
        exchange_heads(b_, "mamba_all_to_all", Exchange::rows_for_heads, own.all());
    const std::vector<TensorId> ordered =
        reorder("mamba_order", received, {Pointwise::order_by_sequence, Pointwise::order_by_rank});
    return {ordered[0], ordered[1], ordered[2]};
  }
  TensorId own_tokens(TensorId scanned) {
    const std::vector<TensorId> ordered =
        reorder("scanned_order", {scanned}, {Pointwise::order_by_rank, Pointwise::order_by_sequence});
    return exchange_heads(b_, "scanned_all_to_all", Exchange::heads_for_rows, ordered).front();
  }

  struct Orders {
    Pointwise there, back;
  };
  std::vector<TensorId> reorder(const std::string& name, const std::vector<TensorId>& from,
                                const Orders& what) {
    std::vector<TensorId> to;
    for (const TensorId tensor : from)
      to.push_back(b_.activation(b_[tensor].name + "_ordered", b_[tensor].elements));
    b_.forward({name, what.there, from, to});
    b_.undo([&b = b_, name, back = what.back, from, to] {
      std::vector<TensorId> gradients, makes;
      for (const TensorId tensor : to) gradients.push_back(b.gradient_of(tensor));
      for (const TensorId tensor : from) makes.push_back(b.new_gradient(tensor));
      b.backward_input({name + "_backward", back, gradients, makes});
    });
    return to;
  }

  // Its output is dropped and recomputed: only its input stays (MambaSplitConv1dScanCombinedFn).
  Convolution convolve(TensorId input) {
    const std::int64_t channels = space_.inner() + space_.maps();
    Convolution of{input};
    of.weight = b_.parameter("convolution_weight", Shape::elements(channels, space_.whole.convolution));
    of.bias = b_.parameter("convolution_bias", static_cast<double>(channels));
    for (const TensorId parameter : {of.weight, of.bias}) b_.share_out(parameter, {space_.channels()});
    of.output = b_.activation("convolved", b_[input].elements);
    b_.forward(of.into("convolution", of.output));
    b_.undo([&b = b_, of] {
      const std::vector<TensorId> sums = sums_of(b, {of.weight, of.bias});
      std::vector<TensorId> writes = {b.new_gradient(of.input)};
      writes.insert(writes.end(), sums.begin(), sums.end());
      b.backward_input({"convolution_backward",
                        Pointwise::convolution_backward,
                        {b.gradient_of(of.output), of.input, of.weight, of.bias},
                        writes});
      add_sums(b, "convolution_weight_gradient", sums, {of.weight, of.bias});
    });
    return of;
  }

  TensorId scan(const Projected& from, const Convolution& convolved) {
    const auto heads = static_cast<double>(space_.heads());
    const std::vector<TensorId> of_heads = {b_.parameter("step_bias", heads),
                                            b_.parameter("decay_log", heads), b_.parameter("skip", heads)};
    for (const TensorId parameter : of_heads) b_.share_out(parameter, {{space_.heads()}});
    const TensorId output = b_.activation("scan_output", b_[from.gate].elements);
    const TensorId ungated = b_.activation("ungated", b_[from.gate].elements);
    Scan what = space_.scan(shape_.tokens);
    std::vector<TensorId> reads = {from.gate, convolved.output, from.steps};
    reads.insert(reads.end(), of_heads.begin(), of_heads.end());
    Kernel there{"scan", what, reads, {output, ungated, states(what, "chunk_states")}};
    there.launches = kForwardLaunches;
    b_.forward(there);
    what.backward = true;
    b_.undo([this_ = *this, what, from, convolved, of_heads, output, ungated]() mutable {
      this_.undo_scan(what, from, convolved, of_heads, output, ungated);
    });
    return output;
  }

  TensorId states(const Scan& scan, const std::string& name) {
    const double chunks = static_cast<double>(scan.tokens) / static_cast<double>(scan.chunk);
    return b_.activation(name, chunks * Shape::elements(scan.heads * scan.head_dim, scan.state), kStateBytes);
  }

  void undo_scan(const Scan& what, const Projected& from, const Convolution& convolved,
                 const std::vector<TensorId>& of_heads, TensorId output, TensorId ungated) {
    const TensorId gradient = b_.gradient_of(output);
    const TensorId again = b_.scratch_gradient("convolved_again", b_[convolved.output].elements);
    b_.backward_input(convolved.into("convolution_again", again));
    std::vector<TensorId> reads = {gradient, from.gate, again, from.steps, ungated};
    reads.insert(reads.end(), of_heads.begin(), of_heads.end());
    std::vector<TensorId> writes = {b_.new_gradient(from.gate), b_.new_gradient(convolved.output),
                                    b_.new_gradient(from.steps)};
    const std::vector<TensorId> sums = sums_of(b_, of_heads);
    writes.insert(writes.end(), sums.begin(), sums.end());
    writes.push_back(b_.scratch_gradient("decay_of_tokens", b_[from.steps].elements, kSumBytes));
    writes.push_back(states(what, "chunk_states_again"));
    Kernel back{"scan_backward", what, reads, writes};
    back.launches = kBackwardLaunches;
    b_.backward_input(back);
    add_sums(b_, "scan_weight_gradient", sums, of_heads);
  }

  BlockBuilder& b_;
  const Shape& shape_;
  Space space_;
};

}  // namespace

Branch mamba(BlockBuilder& b, const Model& model, const Shape& shape, TensorId input) {
  return Mixer(b, model, shape).run(input);
}

}  // namespace rehearse
