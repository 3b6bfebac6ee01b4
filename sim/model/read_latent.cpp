#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

LatentAttention read_latent(const FamilyConfig& config) {
  LatentAttention latent;
  latent.q_rank = config.integer_or("q_lora_rank", 0, 1, bounds::kLatentRank);
  latent.kv_rank = config.integer("kv_lora_rank", 1, bounds::kLatentRank);
  latent.nope_head_dim = config.integer("qk_nope_head_dim", 1, bounds::kHeadDim);
  latent.rope_head_dim = config.integer("qk_rope_head_dim", 1, bounds::kHeadDim);
  latent.v_head_dim = config.integer("v_head_dim", 1, bounds::kHeadDim);
  return latent;
}

}  // namespace rehearse
