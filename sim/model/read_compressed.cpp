#include <fmt/core.h>

#include <map>

#include "model/bounds.h"
#include "model/families.h"

namespace rehearse {

namespace {

// Tokens per compressed key of each layer. DeepSeek's files list them, followed by those of MTP layers. Files
// of transformers name the kind of each layer.
std::vector<std::int64_t> listed_ratios(const FamilyConfig& config, std::int64_t layers) {
  const Json& list = config.value("compress_ratios");
  if (!list.is_array() || list.size() < static_cast<std::size_t>(layers))
    config.fail("compress_ratios", "must have an entry for each layer",
                fmt::format("{} entries, {} layers", list.size(), layers));
  std::vector<std::int64_t> ratios;
  for (std::size_t layer = 0; layer < static_cast<std::size_t>(layers); ++layer) {
    if (!list[layer].is_number_unsigned() || list[layer] > bounds::kPositions)
      config.file().fail(fmt::format("{}/{}", config.name("compress_ratios"), layer),
                         "must be a whole number of tokens, or 0", "found " + list[layer].dump(), "0");
    ratios.push_back(list[layer].get<std::int64_t>());
  }
  return ratios;
}

std::int64_t rate_of(const FamilyConfig& config, const std::string& type, std::int64_t usual) {
  constexpr const char* kRates = "compress_rates";
  if (!config.has(kRates)) return usual;
  return config.file().object(kRates).integer_or(type, usual, 1, bounds::kPositions);
}

std::vector<std::int64_t> ratios_of_types(const FamilyConfig& config, std::int64_t layers) {
  const Json& types = config.value("layer_types");
  if (!types.is_array() || types.size() != static_cast<std::size_t>(layers))
    config.fail("layer_types", "must name the attention of each layer",
                fmt::format("{} names, {} layers", types.size(), layers));
  const std::string sparse = "compressed_sparse_attention", heavy = "heavily_compressed_attention";
  const std::map<Json, std::int64_t> known = {
      {"sliding_attention", 0}, {sparse, rate_of(config, sparse, 4)}, {heavy, rate_of(config, heavy, 128)}};
  std::vector<std::int64_t> ratios;
  for (std::size_t layer = 0; layer < types.size(); ++layer) {
    const auto found = known.find(types[layer]);
    if (found == known.end())
      config.file().fail(fmt::format("layer_types/{}", layer),
                         fmt::format("must be sliding_attention, {} or {}", sparse, heavy),
                         "found " + types[layer].dump(), "sliding_attention");
    ratios.push_back(found->second);
  }
  return ratios;
}

}  // namespace

void read_compressed(const FamilyConfig& config, Model& model) {
  CompressedAttention of;
  of.q_rank = config.integer("q_lora_rank", 1, bounds::kLatentRank);
  of.groups = config.integer("o_groups", 1, bounds::kHeads);
  of.group_rank = config.integer("o_lora_rank", 1, bounds::kLatentRank);
  of.index_heads = config.integer("index_n_heads", 1, bounds::kHeads);
  of.index_head_dim = config.integer("index_head_dim", 1, bounds::kHeadDim);
  of.top_k = config.integer("index_topk", 1, bounds::kPositions);
  of.sparse = rate_of(config, "compressed_sparse_attention", of.sparse);
  model.compressed = of;
  model.window = config.integer("sliding_window", 1, bounds::kPositions);
  model.streams = config.integer_or("hc_mult", 1, 1, bounds::kStreams);
  const std::vector<std::int64_t> ratios = config.has("compress_ratios")
                                               ? listed_ratios(config, model.layers)
                                               : ratios_of_types(config, model.layers);
  const std::int64_t hashed = config.integer_or("num_hash_layers", 0, 0, model.layers);
  std::vector<LayerShape> shapes(ratios.size(), model.own_shape());
  for (std::size_t layer = 0; layer < shapes.size(); ++layer) {
    shapes[layer].compression = ratios[layer];
    shapes[layer].hashes_experts = static_cast<std::int64_t>(layer) < hashed;
  }
  set_shapes(model, shapes);
}

}  // namespace rehearse
