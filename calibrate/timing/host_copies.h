// How fast does a GPU copy to its host and back?
#pragma once

#include <functional>
#include <vector>

#include "cost/measurement.h"
#include "kernels/device.h"

namespace rehearse {

// Copies of 64 KiB to 256 MiB in both directions through pinned memory, each for a part of `budget_s`
// seconds. Fewer when `stopped` returns true.
std::vector<HostCopySample> time_host_copies(kernels::Device& device, double budget_s,
                                             const std::function<bool()>& stopped);

}  // namespace rehearse
