// On which core does a rank run?
#pragma once

#include <cstddef>

namespace rehearse {

// Keeps the calling thread, and the threads that it makes, on core `rank` of those that this process may use,
// counted round. Where the system refuses, the thread goes wherever it is put.
void pin_to_core(std::size_t rank);

}  // namespace rehearse
