// Which layers does Megatron-LM's --hybrid-layer-pattern name, and what model is made of them?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

// "M-M*|E/*E/*E": layers, | border of stages, and behind each / the layers of a module of multi-token
// prediction, all alike (core/models/hybrid/hybrid_layer_allocation.py).
struct HybridPattern {
  std::string layers;       // a letter each
  std::vector<int> stages;  // layers between borders; empty: no border
  std::string module;       // "" where modules is 0
  std::int64_t modules = 0;
};

// Also by its older names. InputError for a letter that has no model here, or modules that differ.
std::optional<HybridPattern> hybrid_pattern(const MegatronFlags& flags);

// Its layers, modules and state spaces, in the words of a model that is written out.
void add_hybrid(const MegatronFlags& flags, const HybridPattern& pattern, Json& config);

}  // namespace rehearse
