#include "cases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "plan/frameworks/traits.h"
#include "plan/sharding.h"
#include "plan/stages.h"

namespace rehearse {

namespace {

Model tiny_model() {
  Model model;
  model.layers = 4;
  model.hidden = 32;
  model.heads = 8;
  model.kv_heads = 8;
  model.head_dim = 4;
  model.ffn_hidden = 48;
  model.vocab = 48;
  model.max_positions = 12;
  return model;
}

}  // namespace

Model tiny_gpt() {
  Model model = tiny_model();
  model.name = "tiny-gpt";
  model.norm = Norm::layer;
  model.positions = Positions::learned;
  model.gated_mlp = false;
  model.qkv_bias = model.attention_out_bias = model.mlp_bias = true;
  model.tied_embeddings = true;
  return model;
}

Model tiny_llama() {
  Model model = tiny_model();
  model.name = "tiny-llama";
  model.kv_heads = 4;
  return model;
}

Model tiny_mixtral() {
  Model model = tiny_llama();
  model.name = "tiny-mixtral";
  model.experts = Experts{8, 2, 24};
  return model;
}

Model tiny_shared_experts() {
  Model model = tiny_llama();
  model.name = "tiny-shared-experts";
  model.experts = Experts{4, 2, 16, 24, 1, 1};
  return model;
}

Model tiny_hybrid() {
  Model model = tiny_llama();
  model.name = "tiny-hybrid";
  model.pattern = "M*-M";
  model.positions = Positions::none;
  model.gated_mlp = false;
  model.squared_relu = true;
  model.state_space = StateSpace{8, 4, 4, 6, 4, 4};
  return model;
}

Model tiny_hybrid_of_experts() {
  Model model = tiny_hybrid();
  model.name = "tiny-hybrid-of-experts";
  model.pattern = "M*EM";
  model.experts = Experts{4, 2, 16, 24};
  return model;
}

Model tiny_latent() {
  Model model = tiny_model();
  model.name = "tiny-latent";
  model.latent = LatentAttention{12, 10, 4, 2, 5};
  model.head_dim = 6;
  return model;
}

Model tiny_latent_of_experts() {
  Model model = tiny_latent();
  model.name = "tiny-latent-of-experts";
  model.experts = tiny_shared_experts().experts;
  model.experts->router_bias = true;
  return model;
}

Model tiny_further_token() {
  Model model = tiny_shared_experts();
  model.name = "tiny-further-token";
  model.mtp_layers = 1;
  return model;
}

Plan plan_of(ScheduleName schedule, int tp, int pp, int dp) {
  Plan plan;
  plan.tp = tp;
  plan.pp = pp;
  plan.dp = dp;
  plan.vpp = schedule == ScheduleName::interleaved || is_v_shaped(schedule) ? 2 : 1;
  plan.schedule = schedule;
  plan.seq = 8;
  plan.global_batch = 8;
  plan.precision = Precision::fp32;
  plan.overlap_p2p = schedule == ScheduleName::interleaved;  // which it needs with two pipeline ranks
  return plan;
}

GradientSync sync_of(const Model& model, const Plan& plan, int buckets) {
  const bool tied = model.shares_embedding();
  const int replicas = std::max(plan.dp * plan.cp, model.experts ? plan.edp() : 1);
  GradientSync sync{plan.overlap_grad_reduce, tied, replicas, {}};
  sync.each_microbatch = reduces_each_microbatch(plan);
  sync.across = shard_replicas(plan) > 1;
  sync.to_host = plan.offload == Offload::optimizer;
  for (const Stage& stage : split_layers(model, plan)) {
    const int layers = static_cast<int>(stage.layers);
    sync.buckets.push_back(
        plan.zero == 3 ? layers : std::min(buckets, layers + int{stage.embedding} + int{stage.head}));
  }
  return sync;
}

Training training_of(const Model& model, const Plan& plan, int buckets) {
  return {model, plan, make_work(model, plan), complete_schedule(plan, sync_of(model, plan, buckets)), 7};
}

Plan alone(Plan plan) {
  plan.tp = plan.cp = plan.ep = plan.etp = plan.pp = plan.vpp = plan.dp = 1;
  plan.schedule = ScheduleName::one_f_one_b;
  plan.sequence_parallel = false;
  plan.zero = plan.zero_shard = 0;
  plan.recompute = Recompute::none;
  plan.offload = Offload::none;
  plan.fused_cross_entropy = true;
  plan.layers_per_stage.clear();
  return plan;
}

bool runs(const Plan& plan, const Model& model) {
  return broken_rules(plan, model, plan.gpus()).empty() && not_executable(model, plan).empty();
}

namespace {

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

}  // namespace

double largest_beside(const std::string& name, const WholeTensors& tensors) {
  const std::array<std::string, 3> projections = {"query_projection", "key_projection", "value_projection"};
  double largest = 0;
  for (const std::string& own : projections) {
    const std::size_t at = name.find(own);
    if (at == std::string::npos) continue;
    for (const std::string& other : projections)
      largest = std::max(largest, largest_of(tensors.at(std::string(name).replace(at, own.size(), other))));
  }
  return largest > 0 ? largest : largest_of(tensors.at(name));
}

double largest_error(const WholeTensors& found, const WholeTensors& expected, std::string& where) {
  double largest = 0;
  for (const auto& [name, values] : expected) {
    const auto other = found.find(name);
    if (found.size() != expected.size() || other == found.end() || other->second.size() != values.size()) {
      where = name;
      return std::numeric_limits<double>::infinity();
    }
    double difference = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      difference = std::max(difference, std::abs(double{values[i]} - double{other->second[i]}));
    const double size = largest_beside(name, expected);
    if (difference / std::max(size, 1e-30) <= largest) continue;
    largest = difference / std::max(size, 1e-30);
    where = name;
  }
  return largest;
}

}  // namespace rehearse
