// Which layers does Megatron-LM's --hybrid-layer-pattern name, and which model do they make?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

// "M-M*|E/*E/*E": layers, | between stages, and behind each / the layers of a multi-token prediction (MTP)
// module, all alike (core/models/hybrid/hybrid_layer_allocation.py).
struct HybridPattern {
  std::string layers;       // a letter each
  std::vector<int> stages;  // layers between borders; empty: no border
  std::string module;       // "" where modules is 0
  std::int64_t modules = 0;
};

// Reads the option by its older names too. InputError for an unsupported letter, and for MTP modules that
// differ.
std::optional<HybridPattern> hybrid_pattern(const MegatronFlags& flags);

// Adds its layers, MTP modules and state spaces to a written-out model. The pattern wins over --num-layers.
void add_hybrid(const MegatronFlags& flags, const HybridPattern& pattern, Json& config,
                std::vector<std::string>& notes);

}  // namespace rehearse
