// Which layers does a scenario put on which stage?
#pragma once

#include "base/json_reader.h"
#include "run/iteration.h"

namespace rehearse {

// Sets plan.layers_per_stage of the experiment from at most one of: "layers_per_stage" (a list, or "auto" for
// the fastest of splits by cost), "layout", "first_rank_layers" and "last_rank_layers", "embedding_as_layer"
// and "loss_as_layer". A layout sets vpp too, unless that is given. With none of them nanotron splits at
// shares (plan/layer_split.h). InputError for more than one, and for values that they reject. Returns whether
// a split by cost is requested; it needs every other field first.
bool read_layers(const JsonReader& json, const Model& model, Plan& plan);

}  // namespace rehearse
