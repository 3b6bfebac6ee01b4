// Which part of CUDA's driver divides a GPU? Green contexts, as declared in its manual.
#pragma once

#include "cuda_runtime_api.h"

enum CUresult {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 914
};
enum CUdevResourceType { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 };
enum CUgreenCtxCreate_flags { CU_GREEN_CTX_DEFAULT_STREAM = 1 };
enum CUstream_flags { CU_STREAM_NON_BLOCKING = 1 };

using CUdevice = int;
using CUstream = cudaStream_t;
using CUgreenCtx = struct CUgreenCtx_st*;
using CUcontext = struct CUctx_st*;
using CUdevResourceDesc = struct CUdevResourceDesc_st*;

struct CUdevSmResource {
  unsigned smCount;
};
struct CUdevResource {
  CUdevResourceType type;
  CUdevSmResource sm;
};

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource* resource, CUdevResourceType type);
CUresult cuDevSmResourceSplitByCount(CUdevResource* parts, unsigned* count, const CUdevResource* all,
                                     CUdevResource* rest, unsigned flags, unsigned least);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count);
CUresult cuGreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice device,
                          unsigned flags);
CUresult cuGreenCtxDestroy(CUgreenCtx context);
CUresult cuGreenCtxStreamCreate(CUstream* stream, CUgreenCtx context, unsigned flags, int priority);
CUresult cuCtxFromGreenCtx(CUcontext* context, CUgreenCtx green);
CUresult cuCtxPushCurrent(CUcontext context);
CUresult cuCtxPopCurrent(CUcontext* context);
