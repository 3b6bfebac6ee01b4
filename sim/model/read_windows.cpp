#include <fmt/core.h>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

// The least n so that layer l is whole when (l + 1) % n == 0; 0 where no layer is.
std::int64_t step_of_full(const Json& types) {
  for (std::size_t layer = 0; layer < types.size(); ++layer)
    if (types[layer] == kFull) return static_cast<std::int64_t>(layer) + 1;
  return 0;
}

}  // namespace

void read_layer_windows(const JsonReader& config, Model& model) {
  model.window = config.integer_or("sliding_window", 0, 1, bounds::kPositions);
  if (!config.has("layer_types")) return;
  const Json& types = config.value("layer_types");
  if (!types.is_array() || types.size() != static_cast<std::size_t>(model.layers)) {
    config.fail("layer_types", "must name the attention of each layer",
                fmt::format("{} names, num_hidden_layers = {}", types.size(), model.layers));
  }
  model.full_every = step_of_full(types);
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const Json& type = types[static_cast<std::size_t>(layer)];
    const char* const legal = model.window_of(layer) > 0 ? kSliding : kFull;
    if (type == legal) continue;
    config.fail(fmt::format("layer_types/{}", layer),
                "must be sliding_attention, with full_attention in every n-th layer",
                fmt::format("found {} in a step of {}", type.dump(), model.full_every), legal);
  }
}

}  // namespace rehearse
