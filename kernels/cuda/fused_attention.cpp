#include "kernels/cuda/fused_attention.h"

#include <cudnn.h>

#include <atomic>
#include <map>
#include <mutex>

#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/scratch.h"
#include "kernels/device.h"

namespace rehearse::kernels::cuda {

namespace {

void check_cudnn(cudnnStatus_t result, const char* what) {
  if (result != CUDNN_STATUS_SUCCESS)
    throw DeviceError(std::string("cuDNN ") + what + ": " + cudnnGetErrorString(result));
}

class CudnnAttention : public FusedAttention {
 public:
  explicit CudnnAttention(const Partition* partition) : partition_(partition) {}
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;
  ~CudnnAttention() override {
    plans_.clear();  // before the handle that made them
    if (handle_ != nullptr) cudnnDestroy(handle_);
  }

  bool run(const Context& context, const AttentionForward& call) override {
    return run(context, FusedCall(call));
  }
  bool run(const Context& context, const AttentionBackward& call) override {
    return run(context, FusedCall(call));
  }
  std::int64_t calls() const override { return calls_; }

 private:
  // One call at a time: a handle has one stream until it is given another.
  bool run(const Context& context, const FusedCall& call) {
    if (!call.can_be_described()) return false;
    const std::lock_guard lock(mutex_);
    const PartitionInUse in_use(partition_);
    if (!take(context.stream)) return false;
    AttentionPlan* plan = plan_of(call);
    if (plan == nullptr) return false;
    plan->execute(handle_, call, context.scratch->at_least(plan->workspace_bytes(), context.stream));
    ++calls_;
    return true;
  }

  // Sets the handle's stream. All streams of a whole device are possible; a partition's only where this cuDNN
  // supports green contexts.
  bool take(cudaStream_t stream) {
    if (refuses_streams_) return false;
    cudnnStatus_t result = handle_ == nullptr ? cudnnCreate(&handle_) : CUDNN_STATUS_SUCCESS;
    if (result == CUDNN_STATUS_SUCCESS) result = cudnnSetStream(handle_, stream);
    if (partition_ == nullptr) check_cudnn(result, "start");
    refuses_streams_ = result != CUDNN_STATUS_SUCCESS;
    return !refuses_streams_;
  }

  // nullptr where cuDNN refused it.
  AttentionPlan* plan_of(const FusedCall& call) {
    const FusedCall::Key key = call.key();
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second.get();
    return plans_.emplace(key, AttentionPlan::make(handle_, call)).first->second.get();
  }

  const Partition* partition_;
  std::mutex mutex_;
  cudnnHandle_t handle_ = nullptr;
  bool refuses_streams_ = false;
  std::map<FusedCall::Key, std::unique_ptr<AttentionPlan>> plans_;
  std::atomic<std::int64_t> calls_{0};
};

}  // namespace

std::unique_ptr<FusedAttention> open_fused_attention(const Partition* partition) {
  return std::make_unique<CudnnAttention>(partition);
}

std::string cudnn_version() {
  const std::size_t number = cudnnGetVersion();  // 91900 is 9.19.0
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
         std::to_string(number % 100);
}

}  // namespace rehearse::kernels::cuda
