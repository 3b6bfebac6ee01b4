// On which core does a rank run?
#pragma once

#include <cstddef>

namespace rehearse {

// Keeps the calling thread, and the threads that it makes, on one core: number `rank`, modulo the cores that
// this process may use. If the system refuses, the scheduler places the thread.
void pin_to_core(std::size_t rank);

}  // namespace rehearse
