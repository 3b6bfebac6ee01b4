// Models and legal plans for the tests of Work: named shapes of the papers, and random ones.
#pragma once

#include <rapidcheck.h>

#include "model/model.h"
#include "plan/work.h"

namespace rehearse {

struct Case {
  Model model;
  Plan plan;
};

// The GPT of Narayanan et al. 2021 and Korthikanti et al. 2022: biases, GELU, LayerNorm, dropout, learned
// positions, 4h wide MLP, tied table.
inline Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab,
                 std::int64_t seq) {
  Model model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = 4 * hidden;
  model.vocab = vocab;
  model.max_positions = seq;
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  model.tied_embeddings = true;
  model.dropout = true;
  return model;
}

inline Model llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                   std::int64_t ffn, std::int64_t vocab) {
  Model model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.head_dim = hidden / heads;
  model.ffn_hidden = ffn;
  model.vocab = vocab;
  return model;
}

// A GPT without fused attention on random sizes, tp and pp, everything dividing.
inline Case any_gpt() {
  Plan plan;
  plan.tp = *rc::gen::element(1, 2, 4, 8);
  plan.pp = *rc::gen::inRange(1, 4);
  plan.micro_batch = *rc::gen::inRange(1, 5);
  plan.global_batch = plan.micro_batch;
  plan.seq = 8 * *rc::gen::inRange(1, 40);
  plan.fused_attention = false;
  const std::int64_t heads = plan.tp * *rc::gen::inRange(1, 5);
  const std::int64_t hidden = heads * 4 * *rc::gen::inRange(1, 20);
  const std::int64_t layers = plan.pp * *rc::gen::inRange(1, 4);
  return {gpt(layers, hidden, heads, plan.tp * *rc::gen::inRange(1, 500), plan.seq), plan};
}

// Any dense model under any plan: every switch that changes the kernels is drawn.
inline Case any_case() {
  Case c = any_gpt();
  Model& m = c.model;
  m.head_dim = 2 * *rc::gen::inRange(1, 20);
  m.kv_heads = *rc::gen::elementOf(std::vector<std::int64_t>{m.heads, c.plan.tp, 1});
  m.ffn_hidden = c.plan.tp * *rc::gen::inRange(1, 60);
  m.norm = *rc::gen::element(Norm::layer, Norm::rms);
  m.positions = *rc::gen::element(Positions::learned, Positions::rotary);
  m.gated_mlp = *rc::gen::arbitrary<bool>();
  m.qkv_bias = *rc::gen::arbitrary<bool>();
  m.attention_out_bias = *rc::gen::arbitrary<bool>();
  m.mlp_bias = *rc::gen::arbitrary<bool>();
  m.qk_norm = *rc::gen::arbitrary<bool>();
  m.tied_embeddings = *rc::gen::arbitrary<bool>();
  m.parallel_residual = *rc::gen::arbitrary<bool>();
  m.dropout = *rc::gen::arbitrary<bool>();
  c.plan.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
  c.plan.precision = *rc::gen::element(Precision::bf16, Precision::fp8, Precision::fp32);
  c.plan.sequence_parallel = *rc::gen::arbitrary<bool>();
  c.plan.fused_attention = *rc::gen::arbitrary<bool>();
  return c;
}

inline double saved_bytes(const Block& block) {
  return block.bytes(block.saved);
}

inline const Block& block_called(const Work& work, const std::string& name) {
  for (const Block& block : work.blocks) {
    if (block.name == name) return block;
  }
  throw std::out_of_range(name);
}

}  // namespace rehearse
