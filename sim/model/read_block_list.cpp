// Our own format: named blocks, and layers as a list of patterns of block names (docs/models.md). The keys of
// a block are the parts that families share. The file is therefore lowered to a family of its own, whose
// names point back into the file.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/names.h"
#include "model/block_kinds.h"
#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// Allows the `known` keys of an object, and comments, whose keys begin with '_'.
void require_known(const JsonReader& object, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.json().items())
    if (!key.starts_with('_') && std::ranges::find(known, key) == known.end())
      object.fail(key, "must be one of " + some_names(known, key), "", nearest_name(key, known));
}

// Blocks and letters of a layer's mixer and of its MLP; ' ': none.
struct ListedLayer {
  std::string mixer_block, mlp_block;
  char mixer = ' ', mlp = ' ';
};

// Keys whose values may differ between blocks of attention, or between MLPs.
bool is_size(const BlockKind& kind, const std::string& part) {
  static const std::map<std::string, std::set<std::string>> sizes = {
      {"attention", {"num_attention_heads", "num_key_value_heads", "head_dim", "attention_sinks"}},
      {"mlp", {"intermediate_size"}}};
  const auto found = sizes.find(kind.name);
  return found != sizes.end() && found->second.contains(part);
}

class Lowering {
 public:
  explicit Lowering(const FamilyConfig& config)
      : file_(config.file()), family_(config.family()), flat_(config.file().json()) {
    require_known(file_, block_list_keys());
    const JsonReader blocks = file_.object("blocks");
    for (const auto& [name, block] : blocks.json().items())
      if (!name.starts_with('_')) read_block(blocks, name);
    for (const auto& [name, kind] : kinds_) require_in_all(blocks, name, *kind);
    for (const JsonReader& group : file_.objects("layers")) read_group(group);
    if (layers_.empty()) file_.fail("layers", "must have a layer", "found none");
    write_layers();
  }

  Model model() const {
    const FamilyConfig config(JsonReader(flat_, file_.file(), file_.pointer()), family_);
    Model model = read_family(config);
    std::string windows;
    for (const ListedLayer& layer : layers_) windows += windowed_.contains(layer.mixer_block) ? '1' : '0';
    if (windows.find('1') != std::string::npos) {
      model.window = config.integer("sliding_window", 1, bounds::kPositions);
      set_windows(model, windows);
    }
    std::vector<LayerShape> shapes;
    for (const ListedLayer& layer : layers_) {
      const LayerShape shape = shape_of(layer, model);
      shapes.push_back(shape);
      if (is_hybrid() && layer.mixer != ' ' && layer.mlp != ' ') shapes.push_back(shape);
    }
    if (is_hybrid()) split_layers(model);
    set_shapes(model, shapes);
    return model;
  }

 private:
  // The sizes of the layer's blocks. Missing sizes are the model's.
  LayerShape shape_of(const ListedLayer& layer, const Model& model) const {
    LayerShape shape = model.own_shape();
    const JsonReader blocks = file_.object("blocks");
    if (const auto mixer = kinds_.find(layer.mixer_block);
        mixer != kinds_.end() && mixer->second->name == "attention") {
      const JsonReader block = blocks.object(layer.mixer_block);
      shape.heads = block.integer("num_attention_heads", 1, bounds::kHeads);
      shape.kv_heads = block.integer_or("num_key_value_heads", shape.heads, 1, bounds::kHeads);
      if (!block.has("head_dim") && model.hidden % shape.heads != 0)
        block.fail("num_attention_heads", "must divide hidden_size where head_dim is not given",
                   fmt::format("hidden_size = {}, num_attention_heads = {}", model.hidden, shape.heads));
      shape.head_dim = block.integer_or("head_dim", std::max<std::int64_t>(1, model.hidden / shape.heads), 1,
                                        bounds::kHeadDim);
      shape.attention_sinks = block.boolean_or("attention_sinks", false);
    }
    if (layer.mlp == '-')
      shape.ffn_hidden = blocks.object(layer.mlp_block).integer("intermediate_size", 1, bounds::kFfnHidden);
    return shape;
  }

  void read_block(const JsonReader& blocks, const std::string& name) {
    const JsonReader block = blocks.object(name);
    const std::vector<std::string> names = block_kind_names();
    const std::string said = block.text("kind");
    const BlockKind* kind = block_kind(said);
    if (kind == nullptr)
      block.fail("kind", "must be one of " + some_names(names, said), fmt::format("found \"{}\"", said),
                 nearest_name(said, names));
    std::vector<std::string> known = kind->keys;
    known.emplace_back("kind");
    require_known(block, known);
    require_alone(block, *kind);
    kinds_[name] = kind;
    for (const auto& [part, value] : kind->implied.items()) family_.implied[part] = value;
    if (block.has("qk_norm_span")) family_.implied["qk_layernorm"] = true;
    if (block.has("sliding_window")) windowed_.insert(name);
    for (const std::string& part : kind->keys)
      if (block.has(part)) lower(block, *kind, name, part);
  }

  // Mixers of one letter share one shape: a model has one kind of them.
  void require_alone(const JsonReader& block, const BlockKind& kind) const {
    for (const auto& [name, other] : kinds_)
      if (other != &kind && other->letter == kind.letter)
        block.fail("kind",
                   fmt::format("must be as in /blocks/{0}/kind: a model has one kind of {1}", name,
                               kind.letter == '*' ? "attention" : "recurrence"),
                   fmt::format("{} and {}", other->name, kind.name), other->name);
  }

  // Blocks of one kind may differ in their window and sizes. The model has those of the first block.
  void lower(const JsonReader& block, const BlockKind& kind, const std::string& name,
             const std::string& part) {
    const std::string path = fmt::format("blocks/{}/{}", name, part);
    const auto told = lowered_.find(part);
    if (told != lowered_.end() && is_size(kind, part)) return;
    if (told != lowered_.end() && flat_[told->second] != block.value(part))
      block.fail(
          part,
          fmt::format("must be as in /{}: blocks of one kind may differ in their sizes and in having a "
                      "sliding_window",
                      told->second),
          fmt::format("{} and {}", flat_[told->second].dump(), block.value(part).dump()),
          flat_[told->second].dump());
    lowered_[part] = path;
    family_.names[part] = path;
    flat_[path] = block.value(part);
  }

  // A key of one block applies to the whole model. It must therefore be in every block of that kind.
  void require_in_all(const JsonReader& blocks, const std::string& name, const BlockKind& kind) const {
    const JsonReader block = blocks.object(name);
    for (const std::string& part : kind.keys) {
      if (!block.has(part) || part == "sliding_window" || is_size(kind, part)) continue;
      for (const auto& [other, same] : kinds_)
        if (same == &kind && !blocks.object(other).has(part))
          block.fail(part, fmt::format("must be in every block of kind {}", kind.name),
                     fmt::format("/blocks/{} has none", other), block.value(part).dump() + " in both");
    }
  }

  void read_group(const JsonReader& group) {
    require_known(group, {"repeat", "pattern"});
    const std::int64_t repeat = group.integer_or("repeat", 1, 1, bounds::kLayers);
    const Json& pattern = group.value("pattern");
    if (!pattern.is_array() || pattern.empty())
      group.fail("pattern", "must be an array of layers, each the names of its blocks",
                 "found " + pattern.dump());
    std::vector<ListedLayer> layers;
    for (std::size_t i = 0; i < pattern.size(); ++i)
      layers.push_back(layer(group, fmt::format("pattern/{}", i), pattern[i]));
    if (static_cast<std::int64_t>(layers_.size() + layers.size()) * repeat > bounds::kLayers)
      group.fail("repeat", fmt::format("must give at most {} layers", bounds::kLayers));
    for (std::int64_t i = 0; i < repeat; ++i) layers_.insert(layers_.end(), layers.begin(), layers.end());
  }

  // "attention+mlp": a mixer, an MLP or experts, or both.
  ListedLayer layer(const JsonReader& group, const std::string& place, const Json& said) const {
    ListedLayer layer;
    std::vector<std::string> names;
    for (const auto& [name, kind] : kinds_) names.push_back(name);
    const std::string text = said.is_string() ? said.get<std::string>() : "";
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t to = std::min(text.find('+', from), text.size());
      const std::string name = text.substr(from, to - from);
      const auto found = kinds_.find(name);
      if (found == kinds_.end())
        group.fail(place, "must be names of blocks joined by +: " + some_names(names, name),
                   "found " + said.dump(), nearest_name(name, names));
      char& slot = found->second->mixes ? layer.mixer : layer.mlp;
      if (slot != ' ' || (found->second->mixes && layer.mlp != ' '))
        group.fail(place, "must have at most one mixer, and then at most one MLP or experts",
                   "found " + said.dump());
      slot = found->second->letter;
      (found->second->mixes ? layer.mixer_block : layer.mlp_block) = name;
      from = to + 1;
    }
    return layer;
  }

  bool is_hybrid() const {
    return std::ranges::any_of(layers_, [](const ListedLayer& layer) {
      return layer.mixer == 'M' || layer.mixer == ' ' || layer.mlp == ' ';
    });
  }

  void write_layers() {
    Json types = Json::array(), sparse = Json::array();
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      types.push_back(layers_[i].mixer == 'R' ? "linear_attention" : "full_attention");
      if (layers_[i].mlp == 'E') sparse.push_back(i);
    }
    flat_["num_hidden_layers"] = layers_.size();
    if (family_.implied.contains("recurrence")) flat_["layer_types"] = types;
    if (!is_hybrid() && family_.implied.contains("experts")) flat_["moe_layers"] = sparse;
    stand_in("num_attention_heads", 1);
    stand_in("num_key_value_heads", nullptr);
    if (!lowered_.contains("intermediate_size")) {
      if (lowered_.contains("moe_intermediate_size"))
        family_.names["intermediate_size"] = lowered_.at("moe_intermediate_size");
      else
        stand_in("intermediate_size", file_.value("hidden_size"));
    }
  }

  // A value for a kind of block that no layer has, so that no key of the file is read for it.
  void stand_in(const std::string& part, const Json& value) {
    if (!lowered_.contains(part)) family_.implied[part] = value;
  }

  // Splits layers into layers of one part each, as hybrid models have them.
  void split_layers(Model& model) const {
    if (model.recurrence)
      file_.fail("layers", "must give every layer a mixer and an MLP beside a recurrence: attention+mlp",
                 "found a layer of one part, or mamba2");
    if (model.window > 0)
      file_.fail("layers", "must have no sliding_window where a layer has one part, or mamba2");
    for (const ListedLayer& layer : layers_)
      for (const char letter : {layer.mixer, layer.mlp})
        if (letter != ' ') model.pattern += letter;
    model.layers = static_cast<std::int64_t>(model.pattern.size());
    if (model.pattern.find('M') != std::string::npos)
      model.state_space =
          state_space_of(FamilyConfig(JsonReader(flat_, file_.file(), file_.pointer()), family_));
  }

  JsonReader file_;
  ModelFamily family_;
  Json flat_;
  std::map<std::string, const BlockKind*> kinds_;  // by block name
  std::map<std::string, std::string> lowered_;     // by part: the path of its value
  std::set<std::string> windowed_;                 // names of blocks with a window
  std::vector<ListedLayer> layers_;
};

}  // namespace

Model read_block_list(const FamilyConfig& config) {
  return Lowering(config).model();
}

}  // namespace rehearse
