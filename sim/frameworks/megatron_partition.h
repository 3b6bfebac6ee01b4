// How does Megatron-DeepSpeed cut the layers into stages, where its options say so?
#pragma once

#include <string>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/megatron_flags.h"

namespace rehearse {

// --pp-partition-method, which the text may leave out.
void add_partition(const MegatronFlags& flags, Json& plan, std::vector<std::string>& notes);

}  // namespace rehearse
