// The small model that tests of calibration share.
#pragma once

#include "model/model.h"

namespace rehearse {

inline Model small_model(int layers) {
  Model model;
  model.name = "small";
  model.layers = layers;
  model.hidden = 64;
  model.heads = model.kv_heads = 8;
  model.head_dim = 8;
  model.ffn_hidden = 80;
  model.vocab = 128;
  model.max_positions = 64;
  return model;
}

}  // namespace rehearse
