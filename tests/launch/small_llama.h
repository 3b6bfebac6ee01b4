// Which small model do the tests of launches share?
#pragma once

#include "model/model.h"

namespace rehearse {

inline Model small_llama() {
  Model model;
  model.layers = 2;
  model.hidden = 128;
  model.heads = 8;
  model.kv_heads = 4;
  model.head_dim = 16;
  model.ffn_hidden = 192;
  model.vocab = 512;
  model.max_positions = 64;
  return model;
}

}  // namespace rehearse
