#include "kernels/cuda/attention_plan.h"

#include <cuda_runtime_api.h>
#include <cudnn_frontend.h>

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace rehearse::kernels::cuda {

namespace {

namespace graph = cudnn_frontend::graph;
using cudnn_frontend::DataType_t;
using Attributes = std::shared_ptr<graph::Tensor_attributes>;

constexpr std::int64_t kAlignment = 16;  // bytes, of the start of a row, a head and a place

// Batch, heads, places and columns of a matrix, with their strides.
struct Extent {
  std::vector<std::int64_t> sizes, strides;
};

Extent extent(const FusedCall& call, Operand which) {
  const AttentionShape& shape = call.shape;
  const bool of_values = which == Operand::value || which == Operand::output ||
                         which == Operand::output_gradient || which == Operand::value_gradient;
  const bool of_keys = which == Operand::key || which == Operand::value || which == Operand::key_gradient ||
                       which == Operand::value_gradient;
  const Tokens& tokens = of_keys ? shape.keys : shape.queries;
  const std::int64_t width = which == Operand::statistics ? 1 : of_values ? shape.v_head_dim : shape.head_dim;
  const std::int64_t row = call[which].stride;
  const std::int64_t sequence = tokens.position_major ? row : tokens.length * row;
  const std::int64_t place = tokens.position_major ? tokens.sequences * row : row;
  return {{tokens.sequences, of_keys ? shape.kv_heads : shape.heads, tokens.length, width},
          {sequence, width, place, 1}};
}

// Identifiers of cuDNN's tensors count from 1.
std::int64_t identifier(Operand which) {
  return static_cast<std::int64_t>(which) + 1;
}

template <typename Made>
Made& set(Made& made, const FusedCall& call, Operand which) {
  const Extent its = extent(call, which);
  made.set_uid(identifier(which)).set_dim(its.sizes).set_stride(its.strides);
  if (which == Operand::statistics) made.set_data_type(DataType_t::FLOAT);
  return made;
}

Attributes input(graph::Graph& whole, const FusedCall& call, Operand which) {
  graph::Tensor_attributes made;
  return whole.tensor(set(made, call, which));
}

void set_output(const Attributes& made, const FusedCall& call, Operand which) {
  made->set_output(true);
  set(*made, call, which);
}

// The left bound counts the keys that a query sees, its own included: key > query - bound.
template <typename Options>
void set_mask(Options& options, const AttentionShape& shape) {
  if (!shape.causal) return;
  options.set_diagonal_alignment(cudnn_frontend::DiagonalAlignment_t::TOP_LEFT)
      .set_diagonal_band_right_bound(0);
  if (shape.window > 0 && shape.window < shape.keys.length)
    options.set_diagonal_band_left_bound(static_cast<int>(shape.window));
}

void describe_forward(graph::Graph& whole, const FusedCall& call) {
  graph::SDPA_attributes options;
  options.set_name("attention").set_generate_stats(true).set_attn_scale(call.shape.scale);
  options.set_implementation(cudnn_frontend::AttentionImplementation_t::COMPOSITE);  // known statistics
  set_mask(options, call.shape);
  const auto made = whole.sdpa(input(whole, call, Operand::query), input(whole, call, Operand::key),
                               input(whole, call, Operand::value), options);
  set_output(made[0], call, Operand::output);
  set_output(made[1], call, Operand::statistics);
}

void describe_backward(graph::Graph& whole, const FusedCall& call) {
  graph::SDPA_backward_attributes options;
  options.set_name("attention_backward").set_attn_scale(call.shape.scale);
  set_mask(options, call.shape);
  const auto made = whole.sdpa_backward(
      input(whole, call, Operand::query), input(whole, call, Operand::key),
      input(whole, call, Operand::value), input(whole, call, Operand::output),
      input(whole, call, Operand::output_gradient), input(whole, call, Operand::statistics), options);
  constexpr std::array kGradients = {Operand::query_gradient, Operand::key_gradient, Operand::value_gradient};
  for (std::size_t i = 0; i < kGradients.size(); ++i) set_output(made.at(i), call, kGradients.at(i));
}

std::shared_ptr<graph::Graph> describe(const FusedCall& call) {
  auto whole = std::make_shared<graph::Graph>();
  whole->set_io_data_type(call[Operand::query].type == Type::bf16 ? DataType_t::BFLOAT16 : DataType_t::HALF)
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
  call.is_backward() ? describe_backward(*whole, call) : describe_forward(*whole, call);
  return whole;
}

// nullptr where cuDNN has no kernel for the call.
std::shared_ptr<graph::Graph> describe_supported(cudnnHandle_t handle, const FusedCall& call) {
  try {
    std::shared_ptr<graph::Graph> whole = describe(call);
    if (whole->validate().is_good() && whole->build_operation_graph(handle).is_good() &&
        whole->create_execution_plans({cudnn_frontend::HeurMode_t::A}).is_good() &&
        whole->check_support().is_good())
      return whole;
  } catch (const std::exception&) {
    // The headers throw where they do not know this version of cuDNN.
  }
  return nullptr;
}

void check(cudnn_frontend::error_t status, const char* what) {
  if (status.is_bad())
    throw DeviceError(std::string("cuDNN attention, ") + what + ": " + status.get_message());
}

bool is_aligned(const Tensor& matrix) {
  return reinterpret_cast<std::uintptr_t>(matrix.data) % kAlignment == 0 &&
         matrix.stride * static_cast<std::int64_t>(bytes_of(matrix.type)) % kAlignment == 0;
}

}  // namespace

FusedCall::FusedCall(const AttentionForward& call)
    : shape(call.shape), matrices{call.query, call.key, call.value, call.output,     {},
                                  {},         {},       {},         call.log_sum_exp} {}

FusedCall::FusedCall(const AttentionBackward& call)
    : shape(call.shape), matrices{call.query,           call.key,
                                  call.value,           call.output,
                                  call.output_gradient, call.query_gradient,
                                  call.key_gradient,    call.value_gradient,
                                  call.log_sum_exp} {}

bool FusedCall::can_be_described() const {
  const Type type = matrices[0].type;
  if (type != Type::bf16 && type != Type::fp16) return false;
  if (shape.queries.positions.given() || shape.keys.positions.given()) return false;
  if (shape.queries.rows() == 0 || shape.keys.rows() == 0) return false;
  if (shape.causal ? shape.queries.length != shape.keys.length : shape.window > 0) return false;
  const auto element = static_cast<std::int64_t>(bytes_of(type));
  if (shape.head_dim * element % kAlignment != 0 || shape.v_head_dim * element % kAlignment != 0)
    return false;
  const auto log_sum_exp = matrices.end() - 1;  // fp32, any alignment
  return std::all_of(matrices.begin(), log_sum_exp, [type](const Tensor& matrix) {
    return !matrix.given() || (matrix.type == type && is_aligned(matrix));
  });
}

FusedCall::Key FusedCall::key() const {
  const auto number = [](auto value) { return static_cast<std::int64_t>(value); };
  const bool queries_by_place = shape.queries.position_major, keys_by_place = shape.keys.position_major;
  const bool causal = shape.causal, backward = is_backward();
  Key key = {number(backward),
             number(matrices[0].type),
             shape.queries.sequences,
             shape.queries.length,
             number(queries_by_place),
             shape.keys.length,
             number(keys_by_place),
             shape.heads,
             shape.kv_heads,
             shape.head_dim,
             shape.v_head_dim,
             number(causal),
             shape.window,
             number(std::bit_cast<std::int32_t>(shape.scale))};
  for (std::size_t i = 0; i < kMatrices; ++i) key.at(key.size() - kMatrices + i) = matrices.at(i).stride;
  return key;
}

std::unique_ptr<AttentionPlan> AttentionPlan::make(cudnnHandle_t handle, const FusedCall& call) {
  auto plan = std::make_unique<AttentionPlan>();
  plan->graph_ = describe_supported(handle, call);
  cudaGetLastError();  // of cuDNN's attempts, or the next kernel's check would report it
  if (plan->graph_ == nullptr) return nullptr;
  std::int64_t bytes = 0;
  check(plan->graph_->build_plans(), "plan");
  check(plan->graph_->get_workspace_size(bytes), "workspace");
  plan->workspace_bytes_ = static_cast<std::size_t>(bytes);
  return plan;
}

void AttentionPlan::execute(cudnnHandle_t handle, const FusedCall& call, void* workspace) {
  for (std::size_t i = 0; i < kMatrices; ++i) {
    if (call.matrices.at(i).given()) memory_[identifier(static_cast<Operand>(i))] = call.matrices.at(i).data;
  }
  check(graph_->execute(handle, memory_, workspace), "run");
}

}  // namespace rehearse::kernels::cuda
