// Which defaults does ms-swift have, where Megatron-LM has others?
#pragma once

#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

// Adds them to the plan of a run that names its model as Hugging Face does, which ms-swift alone takes (its
// documentation, v3.12, Megatron-SWIFT, command-line parameters).
void add_swift_defaults(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes);

}  // namespace rehearse
