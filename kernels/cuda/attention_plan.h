// How does cuDNN run an attention call? As a graph, described through its C++ headers (cudnn-frontend).
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "kernels/call.h"

namespace cudnn_frontend::graph {
class Graph;
}

namespace rehearse::kernels::cuda {

enum class Operand : std::uint8_t {
  query,
  key,
  value,
  output,
  output_gradient,
  query_gradient,
  key_gradient,
  value_gradient,
  statistics,  // cuDNN's term for log-sum-exp
};
constexpr std::size_t kMatrices = 9;

// A call of either direction, its matrices by operand.
struct FusedCall {
  explicit FusedCall(const AttentionForward& call);
  explicit FusedCall(const AttentionBackward& call);

  AttentionShape shape;
  std::array<Tensor, kMatrices> matrices;

  const Tensor& operator[](Operand which) const { return matrices.at(static_cast<std::size_t>(which)); }
  bool is_backward() const { return (*this)[Operand::output_gradient].given(); }

  // Whether the call can be expressed to cuDNN. cuDNN may still refuse it.
  bool can_be_described() const;

  // Everything that a plan depends on.
  using Key = std::array<std::int64_t, 14 + kMatrices>;
  Key key() const;
};

class AttentionPlan {
 public:
  // nullptr where cuDNN does not support the call, DeviceError when it fails. May take long: cuDNN may
  // compile.
  static std::unique_ptr<AttentionPlan> make(cudnnHandle_t handle, const FusedCall& call);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Runs on the handle's stream. The call must have the key that the plan was made for. DeviceError when
  // cuDNN fails.
  void execute(cudnnHandle_t handle, const FusedCall& call, void* workspace);

 private:
  std::shared_ptr<cudnn_frontend::graph::Graph> graph_;
  std::size_t workspace_bytes_ = 0;
  std::unordered_map<std::int64_t, void*> memory_;  // by identifier, of the current call
};

}  // namespace rehearse::kernels::cuda
