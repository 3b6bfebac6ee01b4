// How long do the kernels of a scan take on a GPU that nobody timed them on?
//
// Five forward and fifteen backward, none of which keeps memory or tensor cores busy: they wait for one after
// the other, so that both times add up. Within 10 % of what was timed on H100 and H800
// (calibrate/data/misc/state_space.json).
#pragma once

#include "cluster/cluster.h"
#include "plan/work.h"

namespace rehearse {

// `element_bytes` of the activations, `bytes` that the kernel's tensors move: all of linear attention's,
// while Mamba's kernels move more. The GPU's multiprocessors must be on record.
double scan_seconds(const Gpu& gpu, const Scan& scan, double element_bytes, double bytes);

}  // namespace rehearse
