#include "frameworks/fsdp_arguments.h"

#include <array>

namespace rehearse {

namespace {

constexpr const char* kEachLayer = "each layer is sharded by itself";
constexpr const char* kAllSharded = "all parameters are counted as sharded";

constexpr std::array kIgnoredOfFsdpArguments = {
    CountedKey{"forward_prefetch", "false", "gathers of the forward pass begin as PyTorch's do by default"},
    CountedKey{"limit_all_gathers", "true", "two layers at most are counted as gathered at once"},
    CountedKey{"min_num_params", "0", kEachLayer},
    CountedKey{"auto_wrap_policy", "\"TRANSFORMER_BASED_WRAP\"", kEachLayer},
    CountedKey{"wrap_policy.min_num_params", "0", kEachLayer},
    CountedKey{"wrap_policy.disable", "false", kEachLayer},
    CountedKey{"ignored_modules", "null", kAllSharded},
    CountedKey{"ignored_params", "null", kAllSharded}};

}  // namespace

std::span<const CountedKey> ignored_of_fsdp() {
  return kIgnoredOfFsdpArguments;
}

std::set<std::string> free_of_fsdp(const std::string& before) {
  std::set<std::string> keys;
  for (const std::string& key :
       keys_of("cpu_ram_efficient_loading final_state_dict_type load_monolith_rank0_only state_dict_type "
               "sync_module_states transformer_layer_cls_to_wrap use_orig_params "
               "wrap_policy.transformer_layer_cls_to_wrap"))
    keys.insert(before + key);
  return keys;
}

}  // namespace rehearse
