// Which arguments of PyTorch's FSDP do files of other programs name, and which values are counted instead?
#pragma once

#include <set>
#include <span>
#include <string>

#include "frameworks/plan_yaml.h"

namespace rehearse {

// Arguments by PyTorch's names and those of the programs around it
// (torch/distributed/fsdp/fully_sharded_data_parallel.py; accelerate/utils/dataclasses.py;
// transformers/training_args.py).
std::span<const CountedKey> ignored_of_fsdp();

// Arguments without effect on the time and memory of a step, each behind `before`.
std::set<std::string> free_of_fsdp(const std::string& before);

}  // namespace rehearse
