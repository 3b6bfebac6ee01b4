#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "model/bounds.h"
#include "model/model.h"

namespace rehearse {

namespace {

class Rules {
 public:
  explicit Rules(const std::string& file) : file_(file) {}

  void within(const std::string& field, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    broken_.push_back({file_, "", fmt::format("{} must be from {} to {}", field, least, most),
                       fmt::format("{} = {}", field, value),
                       fmt::format("{}", std::clamp(value, least, most))});
  }

  void holds(bool condition, const std::string& rule, const std::string& values,
             const std::string& nearest = "") {
    if (!condition) broken_.push_back({file_, "", rule, values, nearest});
  }

  bool all_hold() const { return broken_.empty(); }
  void throw_if_broken() const {
    if (!broken_.empty()) throw InputError(broken_);
  }

 private:
  std::string file_;
  std::vector<Violation> broken_;
};

void check_shape(Rules& rules, const Model& model) {
  rules.within("layers", model.layers, 1, bounds::kLayers);
  rules.within("hidden", model.hidden, 1, bounds::kHidden);
  rules.within("heads", model.heads, 1, bounds::kHeads);
  rules.within("kv_heads", model.kv_heads, 1, bounds::kHeads);
  rules.within("head_dim", model.head_dim, 1, bounds::kHeadDim);
  rules.within("v_head_dim", model.v_head_dim, 0, bounds::kHeadDim);
  rules.within("ffn_hidden", model.ffn_hidden, 1, bounds::kFfnHidden);
  rules.within("vocab", model.vocab, 1, bounds::kVocab);
  const bool needs_table = model.positions == Positions::learned;
  rules.within("max_positions", model.max_positions, needs_table ? 1 : 0, bounds::kPositions);
  rules.within("window", model.window, 0, bounds::kPositions);
  rules.within("interval of layers without a window", model.full_every, 0, bounds::kLayers);
  rules.holds(model.windows.empty() || model.windows.size() == static_cast<std::size_t>(model.layers),
              "each layer sees a window or all keys",
              fmt::format("{} of {} layers are told", model.windows.size(), model.layers));
  rules.holds(model.pattern.empty() || model.norm_place == NormPlace::before,
              "layers of one part each have a norm before it", model.pattern);
  rules.within("MTP layers", model.mtp_layers, 0, bounds::kMtpLayers);
}

void check_shapes(Rules& rules, const Model& model) {
  for (const LayerShape& shape : model.shapes) {
    rules.within("heads of a layer", shape.heads, 1, bounds::kHeads);
    rules.within("kv_heads of a layer", shape.kv_heads, 1, bounds::kHeads);
    rules.within("head_dim of a layer", shape.head_dim, 1, bounds::kHeadDim);
    rules.within("v_head_dim of a layer", shape.v_head_dim, 0, bounds::kHeadDim);
    rules.within("ffn_hidden of a layer", shape.ffn_hidden, 1, bounds::kFfnHidden);
  }
  const std::size_t told = model.shape_of_layer.size();
  rules.holds(told == 0 || told == static_cast<std::size_t>(model.layers), "each layer has a shape",
              fmt::format("{} of {} layers are told", told, model.layers));
  for (const std::int32_t shape : model.shape_of_layer)
    rules.within("shape of a layer", shape, 0, static_cast<std::int64_t>(model.shapes.size()));
}

void check_experts(Rules& rules, const Experts& experts) {
  rules.within("experts", experts.count, 1, bounds::kExperts);
  rules.within("experts per token", experts.per_token, 1, std::max<std::int64_t>(1, experts.count));
  rules.within("expert ffn_hidden", experts.ffn_hidden, 1, bounds::kExpertFfnHidden);
  rules.within("shared expert ffn_hidden", experts.shared_ffn_hidden, 0, bounds::kFfnHidden);
  rules.within("first sparse layer", experts.first_layer, 0, bounds::kLayers);
  rules.within("interval of sparse layers", experts.every, 1, bounds::kLayers);
  rules.within("latent width of experts", experts.latent, 0, bounds::kHidden);
}

void check_sparse_layers(Rules& rules, const Model& model) {
  const std::string& layers = model.experts->layers;
  rules.holds(layers.empty() || layers.size() == static_cast<std::size_t>(model.layers),
              "each layer has experts or not",
              fmt::format("{} of {} layers are told", layers.size(), model.layers));
}

void check_state_space(Rules& rules, const StateSpace& space) {
  rules.within("heads of the state space", space.heads, 1, bounds::kHeads);
  rules.within("head_dim of the state space", space.head_dim, 1, bounds::kHeadDim);
  rules.within("groups of the state space", space.groups, 1, bounds::kHeads);
  rules.within("state", space.state, 1, bounds::kState);
  rules.within("convolution", space.convolution, 1, bounds::kConvolution);
  rules.within("chunk", space.chunk, 1, bounds::kChunk);
}

void check_recurrence(Rules& rules, const Recurrence& of) {
  rules.within("key heads of the recurrence", of.key_heads, 1, bounds::kHidden);
  rules.within("value heads of the recurrence", of.value_heads, 1, bounds::kHidden);
  rules.within("key head_dim of the recurrence", of.key_head_dim, 1, bounds::kHeadDim);
  rules.within("value head_dim of the recurrence", of.value_head_dim, 1, bounds::kHeadDim);
  rules.within("convolution of the recurrence", of.convolution, 0, bounds::kConvolution);
  rules.within("rank of the recurrence's steps", of.step_rank, 0, bounds::kLatentRank);
  rules.holds(
      of.kind == RecurrenceKind::selective_scan || of.key_heads < 1 || of.value_heads % of.key_heads == 0,
      "value heads of the recurrence must be a multiple of its key heads",
      fmt::format("value heads = {}, key heads = {}", of.value_heads, of.key_heads));
}

void check_mixers(Rules& rules, const Model& model) {
  if (model.recurrence) check_recurrence(rules, *model.recurrence);
  const auto count = static_cast<std::size_t>(model.layers);
  rules.holds(model.rotary.empty() || model.rotary.size() == count, "each layer has rotary positions or none",
              fmt::format("{} of {} layers are told", model.rotary.size(), model.layers));
  rules.holds(model.recurrent.empty() || model.recurrent.size() == count, "each layer recurs or attends",
              fmt::format("{} of {} layers are told", model.recurrent.size(), model.layers));
  rules.holds(model.recurrent.empty() || model.recurrence, "layers that recur need a recurrence",
              model.recurrent);
  if (!model.indexer) return;
  rules.within("heads of the indexer", model.indexer->heads, 1, bounds::kHeads);
  rules.within("head_dim of the indexer", model.indexer->head_dim, 1, bounds::kHeadDim);
  rules.within("keys that the indexer keeps", model.indexer->top_k, 1, bounds::kPositions);
  rules.within("block of the indexer", model.indexer->block, 0, bounds::kPositions);
  rules.holds(model.indexer->block > 0 || (model.latent && model.latent->q_rank > 0),
              "an indexer reads the compressed queries of latent attention", "no q_lora_rank");
  rules.holds(model.indexer->layers.empty() || model.indexer->layers.size() == count,
              "each layer has an indexer or not",
              fmt::format("{} of {} layers are told", model.indexer->layers.size(), model.layers));
}

void check_compressed(Rules& rules, const Model& model, const CompressedAttention& of) {
  rules.within("query rank", of.q_rank, 1, bounds::kLatentRank);
  rules.within("groups of heads", of.groups, 1, bounds::kHeads);
  rules.within("rank of a group's output", of.group_rank, 1, bounds::kLatentRank);
  rules.within("heads of the indexer", of.index_heads, 1, bounds::kHeads);
  rules.within("head_dim of the indexer", of.index_head_dim, 1, bounds::kHeadDim);
  rules.within("keys that the indexer keeps", of.top_k, 1, bounds::kPositions);
  rules.within("tokens of a compressed key", model.compression, 0, bounds::kPositions);
  for (const LayerShape& shape : model.shapes)
    rules.within("tokens of a compressed key", shape.compression, 0, bounds::kPositions);
  rules.holds(of.groups < 1 || model.heads % of.groups == 0, "heads must be a multiple of their groups",
              fmt::format("heads = {}, groups = {}", model.heads, of.groups));
}

// The parts that the letters of a pattern need must exist.
void check_pattern(Rules& rules, const Model& model, const std::string& what, const std::string& pattern) {
  const std::string values = fmt::format("\"{}\"", pattern);
  rules.holds(pattern.find_first_not_of("M*-E") == std::string::npos, what + " has M, *, - and E only",
              values, "M-M*-");
  rules.holds(pattern.find('M') == std::string::npos || model.state_space || model.recurrence,
              what + " has M: a state space is needed", values);
  rules.holds(pattern.find('E') == std::string::npos || model.experts, what + " has E: experts are needed",
              values);
}

void check_patterns(Rules& rules, const Model& model) {
  check_pattern(rules, model, "the pattern of layers", model.pattern);
  check_pattern(rules, model, "the pattern of a module", model.mtp_pattern);
  rules.holds(model.pattern.empty() || model.pattern.size() == static_cast<std::size_t>(model.layers),
              "the pattern has a letter for each layer",
              fmt::format("{} letters, {} layers", model.pattern.size(), model.layers),
              fmt::format("layers = {}", model.pattern.size()));
  const bool repeats =
      model.mtp_pattern.size() != std::set<char>(model.mtp_pattern.begin(), model.mtp_pattern.end()).size();
  rules.holds(!repeats, "a module has one layer of a type", fmt::format("\"{}\"", model.mtp_pattern), "*E");
  rules.holds(model.mtp_pattern.empty() || !model.pattern.empty(),
              "modules of a pattern of their own belong to hybrid models",
              fmt::format("\"{}\"", model.mtp_pattern), "none");
}

void check_latent(Rules& rules, const LatentAttention& latent) {
  rules.within("query rank", latent.q_rank, 0, bounds::kLatentRank);
  rules.within("key and value rank", latent.kv_rank, 1, bounds::kLatentRank);
  rules.within("nope head_dim", latent.nope_head_dim, 1, bounds::kHeadDim);
  rules.within("rope head_dim", latent.rope_head_dim, 1, bounds::kHeadDim);
  rules.within("value head_dim", latent.v_head_dim, 1, bounds::kHeadDim);
}

}  // namespace

void require_valid(const Model& model, const std::string& file) {
  Rules rules(file);
  check_shape(rules, model);
  check_shapes(rules, model);
  if (model.experts) {
    check_experts(rules, *model.experts);
    check_sparse_layers(rules, model);
  }
  if (model.latent) check_latent(rules, *model.latent);
  if (model.compressed) check_compressed(rules, model, *model.compressed);
  rules.within("layers of the encoder", model.encoder_layers, 0, model.layers);
  rules.within("rows of relative positions", model.relative_positions, 0, bounds::kPositions);
  rules.within("width of per-layer embeddings", model.per_layer_width, 0, bounds::kHidden);
  rules.within("rows of per-layer embeddings", model.per_layer_vocab, 0, bounds::kVocab);
  rules.within("copies of rows", model.alternating, 1, bounds::kStreams);
  rules.within("rank of the linear branch", model.laurel_rank, 0, bounds::kLatentRank);
  rules.within("streams", model.streams, 1, bounds::kStreams);
  rules.within("layers between sums over depth", model.depth_block, 0, bounds::kLayers);
  if (model.state_space) check_state_space(rules, *model.state_space);
  check_mixers(rules, model);
  check_patterns(rules, model);
  if (rules.all_hold() && model.state_space) {
    const StateSpace& space = *model.state_space;
    rules.holds(space.heads % space.groups == 0, "heads of the state space must be a multiple of its groups",
                fmt::format("heads = {}, groups = {}", space.heads, space.groups),
                "groups = " + nearest_divisors(space.heads, space.groups));
  }
  if (rules.all_hold()) {
    std::vector<LayerShape> shapes = model.shapes;
    shapes.insert(shapes.begin(), model.own_shape());
    for (const LayerShape& of : shapes)
      rules.holds(of.heads % of.kv_heads == 0, "heads must be a multiple of kv_heads",
                  fmt::format("heads = {}, kv_heads = {}", of.heads, of.kv_heads),
                  "kv_heads = " + nearest_divisors(of.heads, of.kv_heads));
  }
  rules.throw_if_broken();
}

}  // namespace rehearse
