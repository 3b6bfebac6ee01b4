// Which blocks turn the images of a microbatch into rows that take the place of words?
#pragma once

#include "plan/work/blocks.h"

namespace rehearse {

// The tower that runs in a step of the plan; nullptr: none.
const Tower* tower_of_step(const Model& model, const Plan& plan);

// Tokens of a sequence that one image takes: the plan's, or the tower's own.
std::int64_t image_tokens(const Plan& plan, const Tower& tower);

// What a tower's layers are run with. A microbatch is its images, a sequence the patches of one. Megatron-LM
// runs towers with tensor parallelism, but without sequence and context parallelism
// (examples/multimodal/model.py).
Plan tower_plan(const Plan& plan, const Tower& tower);

// Patches to rows, with learned positions.
Block patch_block(const Tower& tower, const Plan& plan);

// Layers of that sort.
Block tower_layer_block(const Tower& tower, const Plan& plan, LayerSort sort);

// Rows of the last layer to tokens of the language model. Projectors of earlier layers (Projector::earlier)
// read the last layer's rows here, and what they make is added to the last one's: as many kernels, whose
// inputs would stay a few layers longer.
Block projector_block(const Tower& tower, const Plan& plan);

// The embedded words, of which the projector's tokens take the place of some.
TensorId place_images(BlockBuilder& builder, const Plan& plan, TensorId words, TensorId images);

// Elements of those tokens on one rank.
double image_elements(const Model& model, const Plan& plan, const Tower& tower);

}  // namespace rehearse
