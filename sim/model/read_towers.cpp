// How is each tower of a multimodal model built? The keys of a configuration in huggingface/transformers
// identify its vision transformer.
#include <algorithm>
#include <array>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

constexpr std::array kTowers = {"vision_config", "audio_config",  "vit_config",     "vision_tower_config",
                                "speech_config", "talker_config", "code2wav_config"};

constexpr std::int64_t kMaxPatch = 1 << 10;  // keeps each multiplication of such sizes within 64 bits
constexpr std::int64_t kMaxImage = 1 << 14;
constexpr std::int64_t kMaxMerge = 32;

using Keys = std::initializer_list<const char*>;

// The value of the first of several alternative keys; 0: no key has a number from 1 to `max`.
std::int64_t first_of(const Json& tower, Keys names, std::int64_t max) {
  for (const char* name : names)
    if (tower.contains(name) && tower[name].is_number_integer() && tower[name].get<std::int64_t>() > 0 &&
        tower[name].get<std::int64_t>() <= max)
      return tower[name].get<std::int64_t>();
  return 0;
}

bool says(const Json& object, const char* key, std::string_view value) {
  return object.contains(key) && object[key].is_string() && object[key].get<std::string>() == value;
}

class TowerReader {
 public:
  // `wrapper`: the object that holds the tower. `text`: width of the language model.
  TowerReader(const Json& wrapper, const char* key, std::int64_t text)
      : wrapper_(wrapper), json_(wrapper[key]), text_(text) {
    tower_.key = key;
  }

  Tower read() {
    if (!read_layers()) return std::move(tower_);
    if (json_.contains("num_position_embeddings") && json_.contains("out_hidden_size")) {
      qwen3();
    } else if (json_.contains("fullatt_block_indexes")) {
      qwen2_5();
    } else if (json_.contains("embed_dim") && json_.contains("spatial_merge_size")) {
      qwen2();
    } else if (says(json_, "model_type", "pixtral")) {
      pixtral();
    } else if (says(json_, "model_type", "clip_vision_model")) {
      clip();
    } else if (says(json_, "model_type", "siglip_vision_model")) {
      siglip();
    } else {
      other();
    }
    return std::move(tower_);
  }

 private:
  std::int64_t number(Keys names, std::int64_t max) const { return first_of(json_, names, max); }

  std::int64_t width_of_mlp() const {
    const std::int64_t width = number(
        {"intermediate_size", "encoder_ffn_dim", "ffn_dim", "vt_intermediate_size"}, bounds::kFfnHidden);
    if (width > 0) return width;
    const Json ratio = json_.value("mlp_ratio", Json());
    if (!ratio.is_number() || !(ratio.get<double>() > 0 && ratio.get<double>() <= 64)) return 0;
    return static_cast<std::int64_t>(ratio.get<double>() * static_cast<double>(tower_.layers.hidden));
  }

  // False where the file does not describe a vision transformer completely: its layers are then known in
  // part.
  bool read_layers() {
    Model& layers = tower_.layers;
    const std::int64_t depth =
        number({"depth", "num_hidden_layers", "encoder_layers", "n_layers", "vt_num_hidden_layers"},
               bounds::kLayers);
    // hidden_size of Qwen2-VL is the language model's.
    layers.hidden =
        number({"embed_dim", "hidden_size", "d_model", "width", "vt_hidden_size"}, bounds::kHidden);
    layers.ffn_hidden = width_of_mlp();
    layers.heads =
        number({"num_heads", "num_attention_heads", "vt_num_attention_heads", "heads"}, bounds::kHeads);
    patch_ = number({"patch_size", "spatial_patch_size"}, kMaxPatch);
    layers.name = tower_.key;
    layers.layers = depth;
    layers.kv_heads = layers.heads;
    layers.norm = Norm::layer;
    layers.positions = Positions::none;
    layers.bidirectional = true;
    layers.gated_mlp = says(json_, "hidden_act", "silu");
    layers.qkv_bias = layers.attention_out_bias = layers.mlp_bias = true;
    const std::int64_t frames = std::max<std::int64_t>(1, number({"temporal_patch_size"}, kMaxMerge));
    const std::int64_t colours =
        std::max<std::int64_t>(1, number({"in_channels", "in_chans", "num_channels"}, kMaxPatch));
    tower_.patch_inputs = (colours > 1 ? colours : 3) * frames * patch_ * patch_;
    tower_.is_known = depth > 0 && layers.hidden > 0 && layers.ffn_hidden > 0 && layers.heads > 0 &&
                      patch_ > 0 && layers.hidden % layers.heads == 0;
    if (tower_.is_known) layers.head_dim = layers.hidden / layers.heads;
    return tower_.is_known;
  }

  // Patches of an image, where all images have one size. 0: sizes differ, or the file gives no size.
  std::int64_t patches() const {
    const std::int64_t side = number({"image_size"}, kMaxImage) / patch_;
    return side * side;
  }

  // Rows that are merged into one token: a square of them, or one.
  std::int64_t merged() const {
    std::int64_t side = number({"spatial_merge_size"}, kMaxMerge);
    if (side == 0) side = first_of(wrapper_, {"spatial_merge_size"}, kMaxMerge);
    return side > 0 ? side * side : 1;
  }

  // A norm of each row, and two linear layers over merged rows.
  void merge(Norm norm, std::int64_t text) {
    tower_.projector.merged = merged();
    tower_.projector.has_norm = true;
    tower_.projector.norm = norm;
    tower_.projector.widths = {tower_.projector.merged * tower_.layers.hidden, text};
  }

  std::int64_t text_or(const char* key) const {
    const std::int64_t width = number({key}, bounds::kHidden);
    return width > 0 ? width : text_;
  }

  // modeling_qwen3_vl.py: Qwen3VLVisionModel. A Qwen3VLVisionPatchMerger serves the last layer, and another
  // each of deepstack_visual_indexes.
  void qwen3() {
    tower_.patch_bias = true;
    tower_.layers.positions = Positions::rotary;
    tower_.layers.max_positions = number({"num_position_embeddings"}, bounds::kVocab);
    merge(Norm::layer, text_or("out_hidden_size"));
    const Json further = json_.value("deepstack_visual_indexes", Json::array());
    tower_.projector.earlier =
        further.is_array() ? std::min<std::int64_t>(static_cast<std::int64_t>(further.size()), 64) : 0;
    tower_.is_exact = true;
  }

  // modeling_qwen2_5_vl.py: layers other than fullatt_block_indexes attend within squares of window_size.
  void qwen2_5() {
    Model& layers = tower_.layers;
    layers.positions = Positions::rotary;
    layers.norm = Norm::rms;
    const std::int64_t side = number({"window_size"}, kMaxImage) / patch_;
    if (side > 0) {
      layers.window = side * side;
      layers.window_in_chunks = true;
      layers.windows.assign(static_cast<std::size_t>(layers.layers), '1');
      for (const Json& full : json_["fullatt_block_indexes"])
        if (full.is_number_unsigned() && full.get<std::uint64_t>() < layers.windows.size())
          layers.windows[full.get<std::size_t>()] = '0';
    }
    merge(Norm::rms, text_or("out_hidden_size"));
    tower_.is_exact = true;
  }

  // modeling_qwen2_vl.py.
  void qwen2() {
    tower_.layers.positions = Positions::rotary;
    merge(Norm::layer, text_or("hidden_size"));
    tower_.is_exact = true;
  }

  // modeling_pixtral.py, with the projectors of modeling_mistral3.py and modeling_llava.py.
  void pixtral() {
    Model& layers = tower_.layers;
    layers.positions = Positions::rotary;
    layers.norm = Norm::rms;
    layers.gated_mlp = true;
    layers.qkv_bias = layers.attention_out_bias = layers.mlp_bias = false;
    tower_.norm_before = true;
    tower_.is_exact = says(wrapper_, "model_type", "mistral3") || says(wrapper_, "model_type", "llava");
    if (!says(wrapper_, "model_type", "mistral3")) return map_twice();
    tower_.projector.merged = merged();
    tower_.projector.has_norm = true;
    tower_.projector.norm = Norm::rms;
    tower_.projector.widths = {layers.hidden, text_, text_};
    tower_.projector.bias = wrapper_.value("multimodal_projector_bias", Json(false)) == true;
  }

  // modeling_llava.py: LlavaMultiModalProjector.
  void map_twice() { tower_.projector.widths = {text_, text_}; }

  void fixed_images() {
    tower_.layers.max_positions = patches() + (tower_.class_row ? 1 : 0);
    tower_.image_tokens = patches() / tower_.projector.merged;
  }

  // modeling_clip.py: CLIPVisionTransformer.
  void clip() {
    tower_.class_row = tower_.norm_before = tower_.norm_after = true;
    map_twice();
    fixed_images();
    tower_.is_exact = says(wrapper_, "model_type", "llava") && patches() > 0;
  }

  // modeling_siglip.py: SiglipVisionTransformer. The projector of modeling_gemma3.py averages rows.
  void siglip() {
    tower_.patch_bias = tower_.norm_after = true;
    const std::int64_t tokens = first_of(wrapper_, {"mm_tokens_per_image"}, kMaxImage * kMaxImage);
    const bool averages = tokens > 0 && patches() % tokens == 0 && patches() >= tokens;
    map_twice();
    if (averages) {
      Projector& projector = tower_.projector;
      projector.merged = patches() / tokens;
      projector.averages = projector.has_norm = true;
      projector.norm = Norm::rms;
      projector.widths = {text_};
      projector.bias = false;
    }
    fixed_images();
    tower_.is_exact = (averages || says(wrapper_, "model_type", "llava")) && patches() > 0;
  }

  void other() {
    if (json_.contains("rms_norm_eps")) tower_.layers.norm = Norm::rms;
    tower_.projector.merged = merged();
    map_twice();
    if (patches() > 0) fixed_images();
  }

  const Json& wrapper_;
  const Json& json_;
  std::int64_t text_;
  std::int64_t patch_ = 0;
  Tower tower_;
};

}  // namespace

std::vector<Tower> read_towers(const Json& config, std::int64_t text_width) {
  std::vector<Tower> towers;
  for (const char* key : kTowers)
    if (config.contains(key) && config[key].is_object() && !config[key].empty())
      towers.push_back(TowerReader(config, key, text_width).read());
  // Omni models of Qwen.
  if (config.contains("thinker_config") && config["thinker_config"].is_object())
    std::ranges::move(read_towers(config["thinker_config"], text_width), std::back_inserter(towers));
  return towers;
}

}  // namespace rehearse
