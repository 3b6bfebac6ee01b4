// Which properties has the GPU that the host emulates?
#pragma once

namespace cuda_on_cpu {

constexpr int kMultiprocessors = 132;
constexpr int kSharedBytes = 48 << 10,
              kMaxSharedBytes = 227 << 10;  // of a block: as it is, and when asked for

int gpu_of_machine();  // which of the machine's GPUs this thread's current device is

}  // namespace cuda_on_cpu
