// Small networks and plans that the tests of executing share.
#pragma once

#include <string>

#include "execute/rank_pool.h"
#include "execute/training.h"
#include "schedule/passes.h"

namespace rehearse {

// Two heads a rank with tp 4, four layers; LayerNorm, biases and learned positions, or RMSNorm, SwiGLU,
// rotary positions and shared key heads.
Model tiny_gpt();
Model tiny_llama();

// The same with top-2 of 8 experts in every layer, or of 4 beside a shared one in all but the first.
Model tiny_mixtral();
Model tiny_shared_experts();

// Layers with one part each: attention without positions, squared ReLU, and two Mamba-2 layers in two chunks.
// The second has experts in place of the MLP.
Model tiny_hybrid();
Model tiny_hybrid_of_experts();

// Latent attention. Heads have 4 elements of their own, 2 rotated ones, and 5 of a value. The second also has
// top-2 of 4 experts beside a shared one in all layers but the first; its router has a bias.
Model tiny_latent();
Model tiny_latent_of_experts();

// tiny_shared_experts() with a module that predicts the token after the next.
Model tiny_further_token();

// fp32, 8 sequences of 8 tokens in microbatches of one.
Plan plan_of(ScheduleName schedule, int tp, int pp, int dp);

// The gradient reduction that training_of() uses.
GradientSync sync_of(const Model& model, const Plan& plan, int buckets = 2);

// The complete schedule with its Work. Gradients that are reduced during the backward pass are split into
// `buckets` parts of a stage, at most one a layer. With ZeRO-3 there are as many parts as layers.
Training training_of(const Model& model, const Plan& plan, int buckets = 2);

// The plan's twin on one rank.
Plan alone(Plan plan);

// Whether the plan is legal and can be executed.
bool runs(const Plan& plan, const Model& model);

// The largest element of a tensor. For queries, keys and values with a GEMM each, it is that of all three, as
// if they were one tensor. A bias of keys adds the same to all scores of a query, which softmax ignores, so
// its gradient alone is only rounding noise.
double largest_beside(const std::string& name, const WholeTensors& tensors);

// The largest difference of any element over largest_beside(); the tensor is named in `where`. Infinite where
// names or sizes differ.
double largest_error(const WholeTensors& found, const WholeTensors& expected, std::string& where);

}  // namespace rehearse
