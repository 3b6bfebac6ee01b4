// How long do kernels take on a part of a GPU while other ranks compute on the others?
#pragma once

#include "cost/profile.h"

namespace rehearse {

// The profile's kernels while of all the others that were beside them when it was taken the share `computing`
// is at work, 0 to 1: t (1 + computing (slowdown - 1)). What the optimizer's step alone runs has all of them
// beside it. The profile as it is where nothing was measured in company.
Profile with_concurrent_ranks(Profile profile, double computing);

}  // namespace rehearse
