#include "model/model.h"

namespace rehearse {

namespace {

LayerType type_of_letter(char letter) {
  switch (letter) {
    case 'M':
      return LayerType::mamba;
    case '*':
      return LayerType::attention;
    case '-':
      return LayerType::mlp;
    default:
      return LayerType::experts;
  }
}

}  // namespace

LayerType Model::type_of(std::int64_t layer) const {
  return pattern.empty() ? LayerType::transformer : type_of_letter(pattern[static_cast<std::size_t>(layer)]);
}

std::vector<LayerType> Model::types_of_module() const {
  std::vector<LayerType> types;
  for (const char letter : mtp_pattern) types.push_back(type_of_letter(letter));
  return types.empty() ? std::vector{type_of(layers - 1)} : types;
}

bool Model::has_layer_of(LayerType type) const {
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if (type_of(layer) == type) return true;
  return false;
}

// Half of the sums that the last layer reads, and the first layer's input.
std::int64_t Model::depth_sums() const {
  return depth_block == 0 ? 0 : (layers + depth_block - 1) / depth_block / 2 + 1;
}

bool Model::attends() const {
  if (has_layer_of(LayerType::attention)) return true;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    if (type_of(layer) == LayerType::transformer && !recurs(layer)) return true;
  return false;
}

bool Model::rotates(std::int64_t layer) const {
  return rotary.empty() || rotary[static_cast<std::size_t>(layer)] == '1';
}

bool Model::recurs(std::int64_t layer) const {
  return !recurrent.empty() && recurrent[static_cast<std::size_t>(layer)] == '1';
}

bool Model::scores_keys(std::int64_t layer) const {
  return indexer && (indexer->layers.empty() || indexer->layers[static_cast<std::size_t>(layer)] == '1');
}

std::int32_t Model::shape_of(std::int64_t layer) const {
  return shape_of_layer.empty() ? 0 : shape_of_layer[static_cast<std::size_t>(layer)];
}

Model Model::shaped(std::int32_t shape) const {
  Model model = *this;
  model.shapes.clear();
  model.shape_of_layer.clear();
  if (shape > 0) static_cast<LayerShape&>(model) = shapes[static_cast<std::size_t>(shape - 1)];
  return model;
}

bool Model::has_mlp() const {
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const LayerType type = type_of(layer);
    if (type == LayerType::mlp || (type == LayerType::transformer && !is_sparse(layer))) return true;
  }
  return false;
}

bool Model::is_sparse(std::int64_t layer) const {
  if (!pattern.empty()) return type_of(layer) == LayerType::experts;
  if (experts && !experts->layers.empty()) return experts->layers[static_cast<std::size_t>(layer)] == '1';
  return experts && layer >= experts->first_layer && (layer + 1) % experts->every == 0;
}

std::int64_t Model::window_of(std::int64_t layer) const {
  if (!windows.empty()) return windows[static_cast<std::size_t>(layer)] == '1' ? window : 0;
  return full_every > 0 && (layer + 1) % full_every == 0 ? 0 : window;
}

}  // namespace rehearse
