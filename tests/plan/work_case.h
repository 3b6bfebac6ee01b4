// Models and legal plans for the tests of Work: named shapes of the papers, and random ones.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

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

// A GPT without fused attention, of random sizes, tp and pp that divide evenly.
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

// Any dense model under any plan: every switch that changes kernels is random.
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
  c.plan.recompute = *rc::gen::elementOf(kRecomputes);
  c.plan.precision = *rc::gen::element(Precision::bf16, Precision::fp8, Precision::fp4, Precision::fp32);
  c.plan.fp8_either_layout = c.plan.precision == Precision::fp4;  // Blackwell takes either layout
  c.plan.sequence_parallel = *rc::gen::arbitrary<bool>();
  c.plan.fused_attention = *rc::gen::arbitrary<bool>();
  c.plan.fused_softmax = *rc::gen::arbitrary<bool>();
  c.plan.fused_norm = *rc::gen::arbitrary<bool>();
  c.plan.fused_rotary = *rc::gen::arbitrary<bool>();
  c.plan.fused_activation = *rc::gen::arbitrary<bool>();
  c.plan.fused_permute = *rc::gen::arbitrary<bool>();
  c.plan.fused_router = *rc::gen::arbitrary<bool>();
  c.plan.recompute_early_stop = *rc::gen::arbitrary<bool>();
  return c;
}

// Adds sparse layers in place of some or all of the MLPs. With `even`, expert rows divide evenly.
inline void add_experts(Case& c, bool even) {
  Plan& p = c.plan;
  Experts experts;
  p.ep = *rc::gen::element(1, 2, 4);
  p.etp = *rc::gen::element(1, 2);
  p.dp = p.ep * p.etp;
  p.global_batch = p.micro_batch * p.dp;
  p.sequence_parallel = true;
  experts.count = p.ep * *rc::gen::element(1, 2, 4);
  experts.per_token = std::min<std::int64_t>(experts.count, *rc::gen::element(1, 2));
  experts.ffn_hidden = p.etp * *rc::gen::inRange(1, 60);
  experts.shared_ffn_hidden = *rc::gen::arbitrary<bool>() ? p.tp * *rc::gen::inRange(1, 60) : 0;
  experts.first_layer = *rc::gen::inRange<std::int64_t>(0, c.model.layers + 1);
  experts.every = *rc::gen::element(1, 2);
  experts.router_bias = *rc::gen::arbitrary<bool>();
  experts.linear_bias = *rc::gen::arbitrary<bool>();
  experts.clamped = *rc::gen::arbitrary<bool>();
  c.model.experts = experts;
  if (even) {
    p.seq = 64 * p.tp * p.cp;  // chosen rows of a rank are a multiple of the number of experts
    c.model.max_positions = p.seq;
    return;
  }
  p.moe_imbalance = *rc::gen::element(1.0, 1.3);
  if (p.moe_imbalance == 1) p.moe_capacity = *rc::gen::element(0.0, 1.0, 1.25);
}

inline void add_latent(Case& c) {
  const auto width = [] { return 2 * *rc::gen::inRange<std::int64_t>(1, 20); };
  const std::int64_t q_rank = *rc::gen::arbitrary<bool>() ? width() : 0;
  c.model.latent = LatentAttention{q_rank, width(), width(), width(), width()};
  c.model.head_dim = c.model.latent->nope_head_dim + c.model.latent->rope_head_dim;
  c.model.kv_heads = c.model.heads;
  c.model.positions = Positions::rotary;
  c.model.qkv_bias = c.model.qk_norm = false;
}

// Splits the sequence over ranks in any of the three ways.
inline void add_context(Case& c) {
  Plan& p = c.plan;
  p.cp = *rc::gen::element(2, 3, 4);
  p.fused_attention = true;
  p.cp_exchange =
      *rc::gen::element(ContextExchange::ring, ContextExchange::gather, ContextExchange::all_to_all);
  p.seq *= 2 * p.cp;
  c.model.max_positions = p.seq;
  c.model.heads *= p.cp;
  c.model.kv_heads = c.model.heads;
}

// Adds windows in some layers, sinks, and multi-token prediction (MTP) layers.
inline void add_variety(Case& c) {
  c.model.attention_sinks = *rc::gen::arbitrary<bool>();
  c.model.mtp_layers = *rc::gen::element(0, 0, 1, 2);
  const bool ring = c.plan.cp > 1 && c.plan.cp_exchange == ContextExchange::ring;
  if (ring || *rc::gen::arbitrary<bool>()) return;
  c.model.window = *rc::gen::inRange(1, 300);
  c.model.full_every = *rc::gen::inRange(0, 4);
}

// Makes layers of one part each, in any order. Chunks of 8 tokens divide every random sequence.
inline void make_hybrid(Case& c) {
  const std::string letters = c.model.experts ? "M*-E" : "M*-";
  const std::int64_t groups = std::int64_t{c.plan.tp} * c.plan.cp * *rc::gen::element(1, 2);
  c.model.state_space = StateSpace{groups * *rc::gen::inRange(1, 4), 4 * *rc::gen::inRange(1, 8), groups,
                                   4 * *rc::gen::inRange(1, 8),      *rc::gen::inRange(1, 5),     8};
  c.model.pattern = "*";  // an attention layer that selective recompute can name
  for (std::int64_t layer = 1; layer < c.model.layers; ++layer)
    c.model.pattern += *rc::gen::elementOf(letters);
  std::reverse(c.model.pattern.begin(), c.model.pattern.end());
  if (c.model.mtp_layers > 0) c.model.mtp_pattern = *rc::gen::element<std::string>("", "M", "*-", "-M*");
  c.model.mtp_repeated = *rc::gen::arbitrary<bool>();
  if (c.model.experts && *rc::gen::arbitrary<bool>()) c.model.experts->latent = 4 * *rc::gen::inRange(1, 20);
}

// Any model, dense, sparse or hybrid, under any plan of this program.
inline Case any_split(bool even = false) {
  Case c = any_case();
  if (*rc::gen::arbitrary<bool>()) add_latent(c);
  if (*rc::gen::arbitrary<bool>()) add_context(c);
  if (*rc::gen::arbitrary<bool>()) add_experts(c, even);
  add_variety(c);
  if (*rc::gen::arbitrary<bool>()) make_hybrid(c);
  c.plan.tp_comm_overlap = c.plan.tp > 1 && c.plan.sequence_parallel && *rc::gen::arbitrary<bool>();
  c.plan.tp_backward_overlap = *rc::gen::arbitrary<bool>();
  RC_ASSERT(broken_rules(c.plan, c.model, c.plan.gpus()).empty());
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

// A loop over "block_called(make_work(...), name).forward" outlives the Work: the block is a copy then.
inline Block block_called(Work&& work, const std::string& name) {
  return block_called(std::as_const(work), name);
}

inline const Kernel& kernel_called(const std::vector<Kernel>& kernels, const std::string& name) {
  for (const Kernel& kernel : kernels) {
    if (kernel.name == name) return kernel;
  }
  throw std::out_of_range(name);
}

inline Kernel kernel_called(std::vector<Kernel>&& kernels, const std::string& name) {
  return kernel_called(std::as_const(kernels), name);
}

inline double parameters_on_all_stages(const Case& c) {
  const Work work = make_work(c.model, c.plan);
  double sum = 0;
  for (int stage = 0; stage < c.plan.stages(); ++stage) sum += work.parameters(stage);
  return sum;
}

// The broken rules, one per line with the nearest legal values; "" when all rules hold.
inline std::string broken(const Case& c) {
  std::string text;
  for (const Violation& violation : broken_rules(c.plan, c.model, c.plan.gpus()))
    text += violation.pointer + ": " + violation.rule + "; " + violation.nearest + "\n";
  return text;
}

}  // namespace rehearse
