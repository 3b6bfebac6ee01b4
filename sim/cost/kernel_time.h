// How long does a kernel of a stage take, and how often does it run?
#pragma once

#include <cstdint>
#include <string>

namespace rehearse {

enum class KernelPass : std::uint8_t { forward, recompute, backward };

struct KernelTime {
  std::string block, name;
  KernelPass pass = KernelPass::forward;
  double runs = 0;     // of one microbatch
  double seconds = 0;  // of one run, alone
  double flops = 0, bytes = 0;
  bool is_collective = false;
  bool of_experts = false;    // a GEMM of experts, or a collective over their ranks
  bool extrapolated = false;  // its shape lies outside the profile's samples
};

}  // namespace rehearse
