// How is a loop spread over threads, each with a state of its own?
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse {

// Calls work(thread, i) for every i < count, each once, from `threads` threads numbered from 0. An exception
// ends the loop and is thrown again.
void in_parallel(std::size_t count, int threads, const std::function<void(int, std::size_t)>& work);

}  // namespace rehearse
