// Which defaults does ms-swift have, where Megatron-LM has others?
#pragma once

#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

// Adds them where the run has --model, which only ms-swift has (its documentation, v3.12, Megatron-SWIFT,
// command-line parameters).
void add_swift_defaults(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes);

}  // namespace rehearse
