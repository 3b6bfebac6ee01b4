// Which blocks turn the images of a microbatch into rows that replace token embeddings?
#pragma once

#include "plan/work/blocks.h"

namespace rehearse {

// The tower of a step of the plan; nullptr: none.
const Tower* tower_of_step(const Model& model, const Plan& plan);

// Tokens that one image takes in a sequence: from the plan, else from the tower.
std::int64_t image_tokens(const Plan& plan, const Tower& tower);

// The plan of a tower's layers. Their microbatch is the images of a microbatch, and a sequence is the patches
// of one image. Megatron-LM runs towers with tensor parallelism, but without sequence and context parallelism
// (examples/multimodal/model.py).
Plan tower_plan(const Plan& plan, const Tower& tower);

// Maps patches to rows, with learned positions.
Block patch_block(const Tower& tower, const Plan& plan);

// A layer of this sort.
Block tower_layer_block(const Tower& tower, const Plan& plan, LayerSort sort);

// Maps rows of the last layer to tokens of the language model. Projectors of earlier layers
// (Projector::earlier) read the last layer's rows here, and their outputs are added to its tokens. A real run
// has as many kernels, but keeps their inputs a few layers longer.
Block projector_block(const Tower& tower, const Plan& plan);

// Replaces some of the token embeddings by the projector's tokens.
TensorId place_images(BlockBuilder& builder, const Plan& plan, TensorId words, TensorId images);

// Elements of the projector's tokens on one rank.
double image_elements(const Model& model, const Plan& plan, const Tower& tower);

}  // namespace rehearse
