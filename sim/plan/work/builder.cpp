#include "plan/work/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <stdexcept>

#include "plan/work/frozen.h"
#include "plan/work/recompute.h"

namespace rehearse {

namespace {

constexpr double kTokenIdBytes = 8;

std::ptrdiff_t readers(const std::vector<Kernel>& kernels, TensorId tensor) {
  return std::count_if(kernels.begin(), kernels.end(), [tensor](const Kernel& kernel) {
    return std::find(kernel.reads.begin(), kernel.reads.end(), tensor) != kernel.reads.end();
  });
}

}  // namespace

BlockBuilder::BlockBuilder(std::string name, const Shape& shape, BlockRole role) : shape_(shape) {
  block_.role = role;
  block_.name = std::move(name);
}

std::string BlockBuilder::prefixed(std::string name) const {
  return name.starts_with(prefix_) ? std::move(name) : prefix_ + name;
}

TensorId BlockBuilder::add(Tensor tensor) {
  tensor.name = prefixed(std::move(tensor.name));
  block_.tensors.push_back(std::move(tensor));
  gradient_parts_.emplace_back();
  return static_cast<TensorId>(block_.tensors.size() - 1);
}

TensorId BlockBuilder::input(std::string name, double elements) {
  block_.input = add({std::move(name), TensorRole::input, elements, shape_.element_bytes});
  return block_.input;
}

TensorId BlockBuilder::batch(std::string name, double elements) {
  return batch(std::move(name), elements, kTokenIdBytes);
}

TensorId BlockBuilder::batch(std::string name, double elements, double element_bytes) {
  return add({std::move(name), TensorRole::batch, elements, element_bytes});
}

TensorId BlockBuilder::activation(std::string name, double elements) {
  return activation(std::move(name), elements, shape_.element_bytes);
}

TensorId BlockBuilder::activation(std::string name, double elements, double element_bytes) {
  return add({std::move(name), TensorRole::activation, elements, element_bytes});
}

TensorId BlockBuilder::parameter(std::string name, double elements, std::int16_t matrices) {
  Tensor tensor{std::move(name), TensorRole::parameter, elements, shape_.element_bytes, false, matrices};
  tensor.use = use_;
  if (freezes_) tensor.role = TensorRole::frozen;
  return add(std::move(tensor));
}

TensorId BlockBuilder::expert_parameter(std::string name, double elements) {
  return add({std::move(name), TensorRole::parameter, elements, shape_.element_bytes, true});
}

TensorId BlockBuilder::tied_parameter(std::string name, double elements) {
  return add({std::move(name), TensorRole::tied, elements, shape_.element_bytes});
}

void BlockBuilder::share_out(TensorId parameter, RankShare share) {
  if (parameter >= 0) block_.tensors[static_cast<std::size_t>(parameter)].share = std::move(share);
}

void BlockBuilder::mark(TensorId tensor, TensorUse use) {
  block_.tensors[static_cast<std::size_t>(tensor)].use = use;
}

void BlockBuilder::forward(Kernel kernel) {
  kernel.name = prefixed(std::move(kernel.name));
  kernel.part = part_;
  kernel.unmeasured = unmeasured_;
  block_.forward.push_back(std::move(kernel));
}

void BlockBuilder::host_waits() {
  block_.forward.back().host_waits = true;
}

void BlockBuilder::finds_maximum() {
  Kernel& kernel = block_.forward.back();
  const TensorId tensor = kernel.writes.front();
  constexpr double kMaximumBytes = 4;
  const TensorId maximum = activation((*this)[tensor].name + "_maximum", 1, kMaximumBytes);
  kernel.writes.push_back(maximum, Slot::maximum);
  maxima_[tensor] = maximum;
}

TensorId BlockBuilder::maximum_of(TensorId tensor) const {
  const auto found = maxima_.find(tensor);
  return found == maxima_.end() ? -1 : found->second;
}

void BlockBuilder::backward_input(Kernel kernel) {
  kernel.name = prefixed(std::move(kernel.name));
  kernel.part = part_;
  kernel.unmeasured = unmeasured_;
  block_.backward_input.push_back(std::move(kernel));
}

void BlockBuilder::backward_weight(Kernel kernel) {
  kernel.name = prefixed(std::move(kernel.name));
  kernel.part = part_;
  kernel.unmeasured = unmeasured_;
  block_.backward_weight.push_back(std::move(kernel));
}

void BlockBuilder::undo(std::function<void()> emit) {
  undo_.push_back({std::move(emit), part_, unmeasured_, prefix_});
}

TensorId BlockBuilder::add_gradient(std::string name, TensorId of) {
  return scratch_gradient(std::move(name), (*this)[of].elements);
}

TensorId BlockBuilder::gradient_of(TensorId tensor) {
  if (parts_of(tensor).empty()) {
    throw std::logic_error(fmt::format("{}: no gradient reaches {}", block_.name, (*this)[tensor].name));
  }
  if (parts_of(tensor).size() > 1) {
    const std::string name = (*this)[tensor].name + "_gradient";
    const std::vector<TensorId> parts = parts_of(tensor);
    const TensorId sum = add_gradient(name, tensor);
    backward_input({name, Pointwise::add, parts, {sum}});
    parts_of(tensor) = {sum};
  }
  return parts_of(tensor).front();
}

TensorId BlockBuilder::new_gradient(TensorId tensor) {
  return new_gradient(tensor, shape_.element_bytes);
}

TensorId BlockBuilder::new_gradient(TensorId tensor, double element_bytes) {
  std::string name = (*this)[tensor].name + "_gradient";
  if (readers(block_.forward, tensor) > 1 || !parts_of(tensor).empty())
    name += fmt::format("_part{}", parts_of(tensor).size());
  const TensorId gradient = scratch_gradient(std::move(name), (*this)[tensor].elements, element_bytes);
  parts_of(tensor).push_back(gradient);
  return gradient;
}

TensorId BlockBuilder::gradient_like(TensorId tensor) {
  return new_gradient(tensor, (*this)[tensor].element_bytes);
}

TensorId BlockBuilder::partial_gradient(TensorId tensor) {
  return add_gradient((*this)[tensor].name + "_gradient_partial", tensor);
}

TensorId BlockBuilder::parameter_gradient(TensorId tensor) {
  const Tensor& parameter = (*this)[tensor];
  const bool is_trained = parameter.role != TensorRole::frozen;
  const TensorId gradient =
      add({parameter.name + "_gradient", TensorRole::gradient, parameter.elements, shape_.gradient_bytes});
  if (is_trained) trained_gradients_.push_back(gradient);
  return gradient;
}

TensorId BlockBuilder::scratch_gradient(std::string name, double elements) {
  return scratch_gradient(std::move(name), elements, shape_.element_bytes);
}

TensorId BlockBuilder::scratch_gradient(std::string name, double elements, double element_bytes) {
  return add({std::move(name), TensorRole::gradient, elements, element_bytes});
}

Gemm BlockBuilder::input_gradient(Gemm gemm) const {
  gemm.pass = GemmPass::input_gradient;
  return gemm;
}

Gemm BlockBuilder::weight_gradient(Gemm gemm) const {
  gemm.pass = GemmPass::weight_gradient;
  if (shape_.fused_accumulation && shape_.gradient_bytes > shape_.element_bytes)
    gemm.result_bytes = 2 * shape_.gradient_bytes;
  return gemm;
}

void BlockBuilder::gradient_was_made(TensorId of, TensorId gradient) {
  parts_of(of).push_back(gradient);
}

void BlockBuilder::pass_gradient(TensorId from, TensorId to) {
  const TensorId gradient = gradient_of(from);  // may add a tensor, which moves the parts
  parts_of(to).push_back(gradient);
}

TensorId BlockBuilder::rerun_from(std::size_t first, TensorId kept) {
  const auto begin = block_.forward.begin() + static_cast<std::ptrdiff_t>(first);
  const auto rerun = block_.recompute.insert(block_.recompute.end(), begin, block_.forward.end());
  if (kept < 0) return kept;
  const Tensor original = (*this)[kept];
  const TensorId copy = activation(original.name + "_again", original.elements, original.element_bytes);
  for (auto kernel = rerun; kernel != block_.recompute.end(); ++kernel) kernel->writes.replace(kept, copy);
  return copy;
}

void BlockBuilder::hands_on(TensorId output) {
  block_.output = output;
  block_.output_gradient =
      add_gradient(output == block_.input ? "handed_on_gradient" : "output_gradient", output);
  parts_of(output).push_back(block_.output_gradient);
}

void BlockBuilder::drop_unneeded() {
  std::vector<TensorId> needed = trained_gradients_;
  if (block_.input_gradient >= 0) needed.push_back(block_.input_gradient);
  const bool has_frozen =
      std::ranges::any_of(block_.tensors, [](const Tensor& each) { return each.role == TensorRole::frozen; });
  if (has_frozen || !trains_input_) keep_backward_of(block_, needed);
}

Block BlockBuilder::finish(bool joins_previous) {
  block_.joins_previous = joins_previous;
  for (auto step = undo_.rbegin(); step != undo_.rend(); ++step) {
    enter(step->part);
    unmeasured(step->unmeasured);
    begin_names(step->prefix);
    step->emit();
  }
  if (block_.input >= 0 && trains_input_) block_.input_gradient = gradient_of(block_.input);
  drop_unneeded();
  if (reruns_by_op_) block_.recompute = kernels_rerun_by_op(block_);
  if (stops_early_) drop_unread_end(block_.recompute, block_);
  block_.saved = derive_saved(block_);
  return std::move(block_);
}

}  // namespace rehearse
