// A GPU's multiprocessors in parts. They only count here: kernels of all parts run on the host's cores.
#include <cuda.h>

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu.h"
#include "stream.h"

struct CUctx_st {};
struct CUgreenCtx_st {
  unsigned multiprocessors = 0;
  CUctx_st context;
};
struct CUdevResourceDesc_st {
  CUdevResource resource;
};

namespace {

constexpr unsigned kStep = 8;  // multiprocessors, of Hopper
thread_local std::vector<CUcontext> entered;

}  // namespace

CUresult cuDeviceGetDevResource(CUdevice /*device*/, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_VALUE;
  *resource = {type, {cuda_on_cpu::kMultiprocessors}};
  return CUDA_SUCCESS;
}

CUresult cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned* count, const CUdevResource* all,
                                     CUdevResource* rest, unsigned flags, unsigned least) {
  const unsigned each = std::max(kStep, (least + kStep - 1) / kStep * kStep);
  if (flags != 0 || all->type != CU_DEV_RESOURCE_TYPE_SM || *count == 0) return CUDA_ERROR_INVALID_VALUE;
  if (each > all->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *count = std::min(*count, all->sm.smCount / each);
  std::fill_n(parts, *count, CUdevResource{all->type, {each}});
  if (rest != nullptr) *rest = {all->type, {all->sm.smCount - *count * each}};
  return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  if (count != 1 || resources->type != CU_DEV_RESOURCE_TYPE_SM || resources->sm.smCount == 0)
    return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  // The driver too has no function that ends one.
  static std::vector<std::unique_ptr<CUdevResourceDesc_st>> descriptions;
  descriptions.push_back(std::make_unique<CUdevResourceDesc_st>(CUdevResourceDesc_st{*resources}));
  *description = descriptions.back().get();
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice /*device*/,
                          unsigned flags) {
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  *context = new CUgreenCtx_st{description->resource.sm.smCount, {}};
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxDestroy(CUgreenCtx context) {
  delete context;
  return CUDA_SUCCESS;
}

CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags, int /*priority*/) {
  if (flags != CU_STREAM_NON_BLOCKING || context->multiprocessors == 0) return CUDA_ERROR_INVALID_VALUE;
  *stream = cuda_on_cpu::make_stream();
  return CUDA_SUCCESS;
}

CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green) {
  *context = &green->context;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  entered.push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  if (entered.empty()) return CUDA_ERROR_INVALID_VALUE;
  *context = entered.back();
  entered.pop_back();
  return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned /*version*/,
                                             unsigned long long /*flags*/,
                                             cudaDriverEntryPointQueryResult* state) {
  static const std::vector<std::pair<std::string_view, void*>> functions = {
      {"cuDeviceGetDevResource", reinterpret_cast<void*>(cuDeviceGetDevResource)},
      {"cuDevSmResourceSplitByCount", reinterpret_cast<void*>(cuDevSmResourceSplitByCount)},
      {"cuDevResourceGenerateDesc", reinterpret_cast<void*>(cuDevResourceGenerateDesc)},
      {"cuGreenCtxCreate", reinterpret_cast<void*>(cuGreenCtxCreate)},
      {"cuGreenCtxDestroy", reinterpret_cast<void*>(cuGreenCtxDestroy)},
      {"cuGreenCtxStreamCreate", reinterpret_cast<void*>(cuGreenCtxStreamCreate)},
      {"cuCtxFromGreenCtx", reinterpret_cast<void*>(cuCtxFromGreenCtx)},
      {"cuCtxPushCurrent", reinterpret_cast<void*>(cuCtxPushCurrent)},
      {"cuCtxPopCurrent", reinterpret_cast<void*>(cuCtxPopCurrent)},
  };
  const auto entry =
      std::find_if(functions.begin(), functions.end(), [&](const auto& each) { return each.first == name; });
  *found = entry == functions.end() ? nullptr : entry->second;
  *state = *found == nullptr ? cudaDriverEntryPointSymbolNotFound : cudaDriverEntryPointSuccess;
  return cuda_on_cpu::result(cudaSuccess);
}
