// Which products does a plan make slow by the width of their rows?
#pragma once

#include <string>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// A warning that names the forward products whose operands cuBLAS loads piecemeal (cost/gemm_kind.h) and the
// rows that make it so; empty where there are none, or where the profile knows no such products.
std::string misaligned_products(const Work& work, const Plan& plan, const Profile& profile);

}  // namespace rehearse
