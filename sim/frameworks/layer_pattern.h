// Which layers does a list in Python name?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// Layers of a network that a launch file describes: far above any trained one.
inline constexpr std::int64_t kMaxLayersOfFile = 4096;

// Megatron-LM's --moe-layer-freq, an entry a layer: "[0,1,1]", "([0]*3+[1]*58)", or "N" for every N-th from
// the first on. Nothing where `text` is neither, or is not of `layers` entries.
std::optional<std::vector<bool>> layer_pattern(const std::string& text, std::int64_t layers);

}  // namespace rehearse
