// The small model that the tests of rules share.
#pragma once

#include "model/model.h"

namespace rehearse::test {

inline Model small_model() {
  Model model;
  model.layers = 8;
  model.hidden = 512;
  model.heads = model.kv_heads = 8;
  model.head_dim = 64;
  model.ffn_hidden = 2048;
  model.vocab = 1024;
  return model;
}

}  // namespace rehearse::test
