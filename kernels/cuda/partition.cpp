#include "kernels/cuda/partition.h"

#include <string>

#include "kernels/cuda/check.h"

namespace rehearse::kernels::cuda {

namespace {

// The driver's function of that name, as of CUDA 12.5, the first version with all of them. It is looked up at
// run time: a machine without a GPU has no driver to link.
template <typename Function>
Function* driver(const char* name) {
#if CUDART_VERSION >= 12050
  constexpr unsigned kGreenContexts = 12050;
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion(name, &found, kGreenContexts, cudaEnableDefault, &state), name);
  if (found == nullptr || state != cudaDriverEntryPointSuccess)
    throw DeviceMissing(std::string("the driver has no ") + name + ": it is older than CUDA 12.5");
  return reinterpret_cast<Function*>(found);
#else
  throw DeviceMissing(std::string("this build's CUDA is too old to divide a GPU: ") + name);
#endif
}

void check_driver(CUresult result, const char* what) {
  if (result != CUDA_SUCCESS)
    throw DeviceError(std::string("CUDA ") + what + ": error " + std::to_string(static_cast<int>(result)));
}

#define REHEARSE_DRIVER(name) driver<decltype(name)>(#name)

}  // namespace

Partition::Partition(int device, CUdevResource multiprocessors)
    : multiprocessors_(static_cast<int>(multiprocessors.sm.smCount)) {
  CUdevResourceDesc description = nullptr;
  check_driver(REHEARSE_DRIVER(cuDevResourceGenerateDesc)(&description, &multiprocessors, 1), "description");
  check_driver(REHEARSE_DRIVER(cuGreenCtxCreate)(&context_, description, device, CU_GREEN_CTX_DEFAULT_STREAM),
               "green context");
}

Partition::~Partition() {
  try {
    REHEARSE_DRIVER(cuGreenCtxDestroy)(context_);
  } catch (const DeviceError&) {
    // The driver that made the context is unloaded, and the context with it.
  }
}

cudaStream_t Partition::make_stream() const {
  CUstream stream = nullptr;
  check_driver(REHEARSE_DRIVER(cuGreenCtxStreamCreate)(&stream, context_, CU_STREAM_NON_BLOCKING, 0),
               "stream");
  return stream;
}

CUcontext Partition::context() const {
  CUcontext context = nullptr;
  check_driver(REHEARSE_DRIVER(cuCtxFromGreenCtx)(&context, context_), "context of a partition");
  return context;
}

PartitionInUse::PartitionInUse(const Partition* partition) : in_use_(partition != nullptr) {
  if (!in_use_) return;
  static auto* const push = REHEARSE_DRIVER(cuCtxPushCurrent);
  check_driver(push(partition->context()), "entry of a partition");
}

PartitionInUse::~PartitionInUse() {
  if (!in_use_) return;
  try {
    static auto* const pop = REHEARSE_DRIVER(cuCtxPopCurrent);
    CUcontext left = nullptr;
    pop(&left);
  } catch (const DeviceError&) {
    // The driver that entered the context is unloaded.
  }
}

std::vector<std::unique_ptr<Partition>> divide(int device, int count) {
  constexpr unsigned kGranularity = 8;  // of Hopper; the driver rounds up for other GPUs
  check(cudaSetDevice(device), "device");
  check(cudaFree(nullptr), "start");  // makes the primary context, which the partitions share
  CUdevResource all = {};
  check_driver(REHEARSE_DRIVER(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM),
               "multiprocessors");
  const unsigned share = all.sm.smCount / static_cast<unsigned>(count) / kGranularity * kGranularity;
  std::vector<CUdevResource> parts(static_cast<std::size_t>(count));
  CUdevResource rest = {};
  auto groups = static_cast<unsigned>(count);
  if (share > 0)
    check_driver(REHEARSE_DRIVER(cuDevSmResourceSplitByCount)(parts.data(), &groups, &all, &rest, 0, share),
                 "division");
  if (share == 0 || groups < static_cast<unsigned>(count))
    throw DeviceMissing("a GPU of " + std::to_string(all.sm.smCount) +
                        " multiprocessors cannot be divided among " + std::to_string(count) + " ranks");
  std::vector<std::unique_ptr<Partition>> partitions;
  for (const CUdevResource& part : parts) partitions.push_back(std::make_unique<Partition>(device, part));
  return partitions;
}

}  // namespace rehearse::kernels::cuda
