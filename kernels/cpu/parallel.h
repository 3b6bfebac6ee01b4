// How is a loop divided over the threads of a CPU device?
#pragma once

#include <cstdint>
#include <exception>

namespace rehearse::kernels::cpu {

// Number of threads for kernels of the calling thread. Each stream's thread sets it once; initially 1.
inline thread_local int team = 1;

// Calls body(i) for every i below `count`; calls must be independent. An exception of one of them is
// rethrown.
template <typename Body>
void for_each(std::int64_t count, const Body& body) {
  const int threads = team;
  if (threads == 1) {
    for (std::int64_t i = 0; i < count; ++i) body(i);
    return;
  }
  std::exception_ptr failure;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

// The least number of columns of a thread, so that no two threads write to one cache line of floats.
constexpr std::int64_t kLineFloats = 16;

// Calls body(first, last) for ranges that cover 0 .. count, at most one a thread. All but the last have a
// length that is a multiple of `grain`.
template <typename Body>
void for_stretches(std::int64_t count, std::int64_t grain, const Body& body) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t pieces = grains < team ? grains : team;
  for_each(pieces, [&](std::int64_t piece) {
    const std::int64_t first = grains * piece / pieces * grain;
    const std::int64_t last = piece + 1 == pieces ? count : grains * (piece + 1) / pieces * grain;
    body(first, last);
  });
}

}  // namespace rehearse::kernels::cpu
