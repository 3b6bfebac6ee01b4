// Which GEMMs does a plan make slow by the width of their rows?
#pragma once

#include <string>

#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse {

// A warning that names the forward GEMMs whose operands cuBLAS loads piecemeal (cost/gemm_kind.h), and the
// rows that cause it. Empty where there are none. Empty too where the profile knows no such GEMMs.
std::string misaligned_gemms(const Work& work, const Plan& plan, const Profile& profile);

}  // namespace rehearse
