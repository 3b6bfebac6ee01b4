// Which keys of ds_config.json have no effect on a step, and which are unsupported but change it?
#pragma once

#include <span>
#include <string>

namespace rehearse {

struct UnmodelledKey {
  const char* key;
  const char* counted;       // in its place
  const char* changes = "";  // above 10 % of the answer (base/omitted_effect.h)
  bool usual = false;        // the value that is counted, where the file has it
};

// Keys of the file, and of its section zero_optimization.
std::span<const char* const> deepspeed_free_keys();
std::span<const char* const> zero_free_keys();
std::span<const UnmodelledKey> deepspeed_unmodelled();
std::span<const UnmodelledKey> zero_unmodelled();

// Finds a key by its path: "scheduler", "zero_optimization/contiguous_gradients".
bool is_free_of_deepspeed(const std::string& path);

}  // namespace rehearse
