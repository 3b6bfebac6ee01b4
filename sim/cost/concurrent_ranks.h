// How long do kernels take on a part of a GPU while other ranks compute on the others?
#pragma once

#include "cost/profile.h"

namespace rehearse {

// The profile with kernels slowed down by other ranks on the same GPU: t (1 + computing (slowdown - 1)).
// `computing`, 0 to 1, is the share of these ranks that compute at the same time. The optimizer step counts
// all of them. Profiles without concurrent measurements stay unchanged.
Profile with_concurrent_ranks(Profile profile, double computing);

}  // namespace rehearse
