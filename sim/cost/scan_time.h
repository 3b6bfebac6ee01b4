// How long do the kernels of a scan take on a GPU without measured times?
//
// Five kernels run forward and fifteen backward. None of them keeps memory or tensor cores busy, because each
// waits for the one before. So the times of bytes and FLOPs add up. The result is within 10 % of times
// measured on H100 and H800 (calibrate/data/misc/state_space.json).
#pragma once

#include "cluster/cluster.h"
#include "plan/work.h"

namespace rehearse {

// `element_bytes`: of the activations. `bytes`: moved by the kernel's tensors. They are all bytes of linear
// attention, while Mamba's kernels move more. The GPU's multiprocessors must be on record.
double scan_seconds(const Gpu& gpu, const Scan& scan, double element_bytes, double bytes);

}  // namespace rehearse
