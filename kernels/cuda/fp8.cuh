// fp8 element types, for the kernels that read or write them. No kernel computes in fp8.
#pragma once

#include <cuda_fp8.h>

#include "kernels/cuda/common.cuh"

namespace rehearse::kernels::cuda {

template <>
__device__ inline __nv_fp8_e4m3 from_float<__nv_fp8_e4m3>(float x) { return __nv_fp8_e4m3(x); }
template <>
__device__ inline __nv_fp8_e5m2 from_float<__nv_fp8_e5m2>(float x) { return __nv_fp8_e5m2(x); }
template <>
constexpr Type type_of<__nv_fp8_e4m3>() { return Type::fp8_e4m3; }
template <>
constexpr Type type_of<__nv_fp8_e5m2>() { return Type::fp8_e5m2; }

// body(T{}) with the C++ type of the elements, as by_type() does.
template <typename Body>
void by_fp8(Type type, const Body& body) {
  if (type == Type::fp8_e4m3) return body(__nv_fp8_e4m3{});
  if (type == Type::fp8_e5m2) return body(__nv_fp8_e5m2{});
  throw DeviceError("operands are quantised to fp8");
}

template <typename Body>
void by_any(Type type, const Body& body) {
  if (type == Type::fp8_e4m3 || type == Type::fp8_e5m2) return by_fp8(type, body);
  by_type(type, body);
}

}  // namespace rehearse::kernels::cuda
