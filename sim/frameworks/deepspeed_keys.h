// Which keys of ds_config.json leave a step as it is, and which change it in a way that is not modelled?
#pragma once

#include <span>
#include <string>

namespace rehearse {

struct UnmodelledKey {
  const char* key;
  const char* counted;  // in its place
  bool usual = false;   // the value that is counted, where the file has it
};

// Of the file, and of its section zero_optimization.
std::span<const char* const> deepspeed_free_keys();
std::span<const char* const> zero_free_keys();
std::span<const UnmodelledKey> deepspeed_unmodelled();
std::span<const UnmodelledKey> zero_unmodelled();

// By its path: "scheduler", "zero_optimization/contiguous_gradients".
bool is_free_of_deepspeed(const std::string& path);

}  // namespace rehearse
