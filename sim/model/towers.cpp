// Which tower of a multimodal model can a step include? Notes name the towers that it omits.
#include <fmt/core.h>

#include <algorithm>

#include "model/model.h"

namespace rehearse {

namespace {

// The known part of the tower's size, as text.
std::string shape_of(const Tower& tower) {
  const Model& layers = tower.layers;
  if (layers.layers == 0 || layers.hidden == 0 || layers.ffn_hidden == 0) return "";
  if (tower.is_exact)
    return fmt::format(" ({} layers of width {}, {} parameters)", layers.layers, layers.hidden,
                       count_tower(tower));
  // Attention and MLP of each layer: other parts are a few hundredths.
  const auto width = static_cast<double>(layers.hidden), ffn = static_cast<double>(layers.ffn_hidden);
  const double size =
      static_cast<double>(layers.layers) * width * (4 * width + (layers.gated_mlp ? 3 : 2) * ffn);
  return fmt::format(" ({} layers of width {}, about {:.2g} B parameters)", layers.layers, layers.hidden,
                     size * 1e-9);
}

}  // namespace

std::vector<std::string> tower_notes(const Model& model, bool has_images) {
  const Tower* const modelled = modelled_tower(model);
  std::vector<std::string> notes;
  for (const Tower& tower : model.towers) {
    const std::string name = tower.key + shape_of(tower);
    if (&tower != modelled || !has_images) {
      notes.push_back(fmt::format(
          "{} is left out: its time and memory, and the tokens that it adds, are not counted; {}", name,
          &tower == modelled ? "--images N puts it before the embedding" : "add its tokens to --seq"));
    } else if (!tower.is_exact) {
      notes.push_back(fmt::format("{}: its norms, biases and projector are taken for LLaVA's", name));
    }
  }
  return notes;
}

const Tower* modelled_tower(const Model& model) {
  const auto tower = std::ranges::find(model.towers, true, &Tower::is_known);
  return tower == model.towers.end() ? nullptr : &*tower;
}

}  // namespace rehearse
