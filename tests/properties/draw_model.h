// A model whose shape the degrees of a run divide.
#pragma once

#include <rapidcheck.h>

#include "base/json_reader.h"

namespace rehearse::properties {

struct Degrees {
  int tp = 1, cp = 1, pp = 1, vpp = 1, dp = 1, ep = 1, etp = 1;
  int gpus() const { return tp * cp * pp * dp; }
  int stages() const { return pp * vpp; }
};

// To be called while rapidcheck generates. `windows`: attention may slide.
Json draw_config(const Degrees& degrees, bool has_experts, int layers, bool windows);

// A vision tower whose heads and widths the degrees divide, to stand in a model's configuration.
Json draw_tower(const Degrees& degrees, const Json& config);

}  // namespace rehearse::properties
