// How is a loop spread over threads, each with its own state?
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse {

// Calls work(thread, i) once for every i < count, from `threads` threads numbered from 0. An exception ends
// the loop and is thrown again.
void in_parallel(std::size_t count, int threads, const std::function<void(int, std::size_t)>& work);

}  // namespace rehearse
