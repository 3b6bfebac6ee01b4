// A small model with a vision tower, and plans with images, which the tests of towers share.
#pragma once

#include <vector>

#include "plan/work/tower.h"
#include "work_case.h"

namespace rehearse {

inline constexpr std::int64_t kTowerWidth = 64, kTextWidth = 256, kNumbersOfAPatch = 48, kImageTokens = 16;

// 2 x 2 patches per token, and a projector of two linear layers, as in Qwen.
inline Model seeing() {
  Model model = llama(4, kTextWidth, 8, 4, 512, 1024);
  Tower& tower = model.towers.emplace_back();
  tower.key = "vision_config";
  tower.layers = gpt(3, kTowerWidth, 4, 0, 0);
  tower.layers.positions = Positions::rotary;
  tower.layers.bidirectional = true;
  tower.layers.dropout = false;
  tower.patch_inputs = kNumbersOfAPatch;
  tower.projector = {.merged = 4, .has_norm = true, .widths = {4 * kTowerWidth, kTextWidth}};
  tower.is_known = tower.is_exact = true;
  return model;
}

inline Plan with_images(std::int64_t images = 2) {
  Plan plan;
  plan.seq = 128;
  plan.images = images;
  plan.image_tokens = kImageTokens;
  return plan;
}

inline std::vector<Model> all_towers() {
  std::vector<Model> models(5, seeing());
  models[1].towers[0].patch_bias = models[1].towers[0].norm_before = models[1].towers[0].norm_after = true;
  models[1].towers[0].layers.max_positions = 4 * kImageTokens;
  models[1].towers[0].class_row = true;
  models[2].towers[0].projector = {.merged = 4,
                                   .averages = true,
                                   .has_norm = true,
                                   .norm = Norm::rms,
                                   .widths = {kTextWidth},
                                   .bias = false};
  models[3].towers[0].projector.widths = {kTowerWidth, kTextWidth, kTextWidth};
  models[4].towers[0].projector.earlier = 2;
  return models;
}

}  // namespace rehearse
