// The ops of the compute stream.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "execute/batch.h"
#include "execute/random.h"
#include "execute/rank.h"

namespace rehearse {

void Rank::launch(const Op& op, kernels::Stream& stream) {
  switch (op.kind) {
    case OpKind::forward:
      return forward(op, stream);
    case OpKind::backward:
    case OpKind::backward_input:
      return backward(op, stream);
    case OpKind::backward_weight:
      return backward_weight(op, stream);
    case OpKind::send_forward:
    case OpKind::send_backward:
      return send(op, stream);
    case OpKind::recv_forward:
    case OpKind::recv_backward:
      return receive(op, stream);
    case OpKind::offload:
      return offload_activations(op, stream);
    case OpKind::reload:
      return reload_activations(op, stream);
    case OpKind::reduce_grad:
      return reduce_gradients(op, stream);
    case OpKind::offload_grad:
      return offload_gradients(op, stream);
    case OpKind::reload_param:
      return reload_parameters(op, stream);
    case OpKind::reduce_tied:
      return reduce_tied(op, stream);
    case OpKind::reduce_replicas:
      return reduce_replicas(op, stream);
    case OpKind::unshard:
      return gather_parameters(op, stream);
    case OpKind::reshard:
      return drop_parameters(op);
    case OpKind::step:
      return step(stream);
    default:
      reject(op, "ops of this kind are not executed yet");
  }
}

void Rank::forward(const Op& op, kernels::Stream& stream) {
  StageRun& stage = stage_run(op);
  Microbatch& microbatch = microbatch_of(op);
  if (op.part == 0) {
    if (op.stage > 0 && !microbatch.arrived) reject(op, "its input has not arrived");
    microbatch.activation = std::exchange(microbatch.arrived, nullptr);
    microbatch.held.assign(stage.pieces.size(), {});
  }
  const Range range = pieces_of(op, stage);
  for (std::size_t i = range.first; i < range.last; ++i) {
    const Block& block = *stage.pieces[i].block;
    Held& held = microbatch.held[i];
    held.resize(block.tensors.size());
    const auto at = [&held](TensorId id) -> Memory& { return held[static_cast<std::size_t>(id)]; };
    if (block.input >= 0) at(block.input) = std::exchange(microbatch.activation, nullptr);
    const bool leaves = i + 1 == stage.pieces.size() && block.output >= 0 && !runs(op.stage + 1);
    if (leaves) at(block.output) = message_place(microbatch.sent);
    run_pass(op, i, stage.pieces[i].passes.forward, stream);
    if (block.output < 0) continue;
    microbatch.activation = at(block.output);
    if (std::ranges::find(block.saved, block.output) == block.saved.end()) at(block.output).reset();
  }
  if (op.part + 1 < op.parts || !microbatch.activation) return;
  Memory output = std::exchange(microbatch.activation, nullptr);
  const auto next = stages_.find(op.stage + 1);
  if (next == stages_.end()) {
    microbatch.outgoing = std::move(output);
  } else {
    next->second.microbatches[static_cast<std::size_t>(op.microbatch)].arrived = std::move(output);
  }
}

// Recomputes the pieces of a group, each from the output of the one before it. The last one's gradient comes
// next.
void Rank::run_again(const Op& op, const Range& group, kernels::Stream& stream) {
  StageRun& stage = stage_run(op);
  Microbatch& microbatch = microbatch_of(op);
  Memory activation;
  for (std::size_t i = group.first; i < group.last; ++i) {
    const Block& block = *stage.pieces[i].block;
    const auto at = [&held = microbatch.held[i]](TensorId id) -> Memory& {
      return held[static_cast<std::size_t>(id)];
    };
    if (i > group.first) at(block.input) = std::exchange(activation, nullptr);
    run_pass(op, i, stage.pieces[i].passes.again, stream);
    activation = std::exchange(at(block.output), nullptr);
  }
}

// Runs B, or I, whose gradients stay for W.
void Rank::backward(const Op& op, kernels::Stream& stream) {
  StageRun& stage = stage_run(op);
  Microbatch& microbatch = microbatch_of(op);
  if (op.part == 0) {
    if (microbatch.held.empty()) reject(op, "its forward has not run");
    if (!microbatch.offloaded.empty()) reject(op, "its activations have not come back from the host");
    if (op.stage + 1 < training_.schedule.stages && !microbatch.arrived_gradient)
      reject(op, "the gradient of its output has not arrived");
    microbatch.output_gradient = std::exchange(microbatch.arrived_gradient, nullptr);
  }
  const Range range = pieces_of(op, stage);
  for (std::size_t i = range.last; i-- > range.first;) {
    const Piece& piece = stage.pieces[i];
    const Block& block = *piece.block;
    Held& held = microbatch.held[i];
    const auto at = [&held](TensorId id) -> Memory& { return held[static_cast<std::size_t>(id)]; };
    if (block.output_gradient >= 0)
      at(block.output_gradient) = std::exchange(microbatch.output_gradient, nullptr);
    const bool leaves = i == 0 && block.input_gradient >= 0 && !runs(op.stage - 1);
    if (leaves) at(block.input_gradient) = message_place(microbatch.sent_gradient);
    if (piece.runs_again_from < i) run_again(op, {piece.runs_again_from, i + 1}, stream);
    const bool whole = op.kind == OpKind::backward;
    run_pass(op, i, whole ? piece.passes.backward : piece.passes.backward_input, stream);
    if (block.input_gradient >= 0)
      microbatch.output_gradient = std::exchange(at(block.input_gradient), nullptr);
    if (whole) held.clear();
  }
  if (op.part + 1 < op.parts) return;
  if (op.kind == OpKind::backward) microbatch.held.clear();
  if (!microbatch.output_gradient) return;
  Memory gradient = std::exchange(microbatch.output_gradient, nullptr);
  const auto previous = stages_.find(op.stage - 1);
  if (previous == stages_.end()) {
    microbatch.outgoing_gradient = std::move(gradient);
  } else {
    previous->second.microbatches[static_cast<std::size_t>(op.microbatch)].arrived_gradient =
        std::move(gradient);
  }
}

void Rank::backward_weight(const Op& op, kernels::Stream& stream) {
  StageRun& stage = stage_run(op);
  Microbatch& microbatch = microbatch_of(op);
  if (microbatch.held.empty()) reject(op, "its gradients have not been made");
  const Range range = pieces_of(op, stage);
  for (std::size_t i = range.last; i-- > range.first;) {
    run_pass(op, i, stage.pieces[i].passes.backward_weight, stream);
    microbatch.held[i].clear();
  }
  if (op.part + 1 == op.parts) microbatch.held.clear();
}

void Rank::run_pass(const Op& op, std::size_t index, const Pass& pass, kernels::Stream& stream) {
  StageRun& stage = stage_run(op);
  Microbatch& microbatch = microbatch_of(op);
  Piece& piece = stage.pieces[index];
  const auto place = [&piece](const char* name, const kernels::Buffer& buffer) {
    const TensorId id = piece.find(name);
    if (id >= 0) piece.fixed[static_cast<std::size_t>(id)] = buffer.data();
  };
  if (piece.layer < 0 || piece.reads_ahead) {
    const Reading& reading = piece.reads_ahead ? microbatch.ahead : microbatch.next;
    place("tokens", reading.tokens);
    place("labels", reading.labels);
    place("loss", reading.losses);
  }
  Held& held = microbatch.held[index];
  held.resize(piece.block->tensors.size());
  held_ = &held;
  op_ = &op;
  piece_ = &piece;
  for (const PassStep& step : pass) {
    for (const TensorId id : step.kernel->writes) {
      const std::size_t matrix = piece.matrix(id);
      if (piece.fixed[matrix] == nullptr && !held[matrix])
        held[matrix] = pool_.take(matrix_bytes(*piece.block, piece.places[matrix]));
    }
    run_kernel(stage.bound[index], step, stream);
    for (const TensorId matrix : step.dies) held[static_cast<std::size_t>(matrix)].reset();
  }
}

void* Rank::locate(const Piece& piece, TensorId matrix) const {
  const auto index = static_cast<std::size_t>(matrix);
  void* memory = piece.fixed[index] != nullptr ? piece.fixed[index] : (*held_)[index].get();
  if (memory == nullptr)
    reject(*op_,
           fmt::format("no op before it has made {} of {}", piece.block->tensors[index].name, piece.name));
  return memory;
}

void Rank::run_kernel(BoundBlock& bound, const PassStep& step, kernels::Stream& stream) {
  const Launch launch{bound, *step.kernel};
  if (const auto* collective = std::get_if<Collective>(&step.kernel->what))
    return collective->group == CommGroup::context ? run_context_collective(launch, *collective, stream)
                                                   : run_collective(launch, *collective, stream);
  const auto* attention = std::get_if<Attention>(&step.kernel->what);
  if (attention != nullptr && attention->steps > 1) return run_ring(launch, *attention, stream);
  if (is_one_of(*step.kernel, Pointwise::dropout, Pointwise::score_dropout))
    seed_dropout(bound, *step.kernel);
  for (const kernels::Call& call : calls_of(bound, *step.kernel)) stream.launch(call);
}

// Derives the seed from the mask's name. So it is the same for every run of the kernel on the same sequences,
// for every split.
void Rank::seed_dropout(BoundBlock& bound, const Kernel& kernel) const {
  const auto mask = static_cast<std::size_t>(kernel.writes.in(Slot::mask));
  std::string masked = bound.block.tensors[mask].name;
  masked.resize(masked.rfind("_mask"));
  bound.seed = seed_of(training_.seed, fmt::format("{}.{} {}", piece_->name, masked, step_));
  bound.first_sequence =
      first_sequence(training_.plan, at_[static_cast<std::size_t>(Axis::dp)], op_->microbatch);
}

void Rank::make_sorting_place() {
  const std::int64_t width = shape_on_one_rank(training_.model, training_.plan).latent;
  std::int64_t rows = 0;
  for (const Block& block : training_.work.blocks) rows = std::max(rows, rows_sorted(block, width));
  rows_of_choices_ = kernels::Buffer(device_, static_cast<std::size_t>(rows) * sizeof(std::int32_t));
}

kernels::Communicator& Rank::group_of(const Collective& collective) {
  if (collective.group == CommGroup::tensor) return *groups_.tensor;
  return collective.group == CommGroup::expert ? *groups_.expert : *groups_.expert_tensor;
}

// A tensor as one contiguous run of elements, which communicators need. Columns of a shared matrix are
// copied.
struct Rank::Travelling {
  Memory copy;
  kernels::Tensor rows;  // where it lies
  kernels::Tensor all;
  kernels::Tensor copied_rows() const { return {all.data, all.type, rows.rows, rows.columns}; }
};

Rank::Travelling Rank::travelling(const Launch& launch, TensorId id) {
  if (launch.bound.places[static_cast<std::size_t>(id)].has_own_matrix())
    return {nullptr, {}, launch.whole(id)};
  Travelling to{nullptr, launch.rows(id, 1), {}};
  to.copy = pool_.take(static_cast<std::size_t>(to.rows.elements()) * kernels::bytes_of(to.rows.type));
  to.all = {to.copy.get(), to.rows.type, 1, to.rows.elements()};
  return to;
}

// Collectives of tensor-parallel ranks, and of ranks that divide the experts.
void Rank::run_collective(const Launch& launch, const Collective& collective, kernels::Stream& stream) {
  const Travelling from = travelling(launch, launch.kernel.reads.front());
  const Travelling to = travelling(launch, launch.kernel.writes.front());
  if (from.copy) stream.launch(kernels::Cast{from.rows, from.copied_rows()});
  kernels::Communicator& group = group_of(collective);
  switch (collective.op) {
    case CollectiveOp::all_reduce:
      group.all_reduce(
          stream, from.all, to.all,
          collective.exchange == Exchange::maximum ? kernels::Reduction::maximum : kernels::Reduction::sum);
      break;
    case CollectiveOp::all_gather:
      group.all_gather(stream, from.all, to.all);
      break;
    case CollectiveOp::reduce_scatter:
      group.reduce_scatter(stream, from.all, to.all);
      break;
    case CollectiveOp::all_to_all:
      group.all_to_all(stream, from.all, to.all);
      break;
    default:
      throw kernels::DeviceError("the collective " + launch.kernel.name + " is not executed yet");
  }
  if (to.copy) stream.launch(kernels::Cast{to.copied_rows(), to.rows});
}

}  // namespace rehearse
