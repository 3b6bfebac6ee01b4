// DeepSeek sparse attention (DeepSeek-V3.2, 2025, section 2.1): an indexer scores all keys before a query and
// keeps top_k of them, which attention sees. Its parts are those of transformers (modular_deepseek_v32.py,
// DeepseekV32Indexer). In the sparse stage of training, the indexer learns from a loss of its own. It passes
// no gradient to its inputs (section 2.1.1).
//
// Every tensor-parallel rank scores all keys. Scores are summed over the heads inside their GEMM. So one
// number of four bytes for each pair is written, and read again for the choice. Omitted: rotations, and the
// loss except for the gradients of its GEMMs.
//
// MiniMax-M3 chooses blocks of keys (transformers, modular_minimax_m3.py). Its queries are also maps of the
// rows, and no weights scale the heads. One score of each head and block is written, the highest of its keys.
#include <algorithm>

#include "plan/work/blocks.h"
#include "plan/work/compressed.h"

namespace rehearse {

namespace {

constexpr double kIndexScoreBytes = 4, kIndexBytes = 4;

// All tokens' rows, without a gradient.
TensorId every_row(BlockBuilder& b, const Shape& shape, TensorId shard, std::int64_t width) {
  if (!shape.sequence_parallel) return shard;
  const TensorId whole = b.activation(b[shard].name + "_for_indexer", Shape::elements(shape.tokens, width),
                                      b[shard].element_bytes);
  b.forward({b[whole].name + "_all_gather",
             Collective{CollectiveOp::all_gather, CommGroup::tensor, b[whole].bytes()},
             {shard},
             {whole}});
  return whole;
}

Gemm repeated(const Shape& shape, Gemm gemm) {
  gemm.of_model = 1.0 / static_cast<double>(shape.tp);
  return gemm;
}

struct IndexMap {
  TensorId input = -1, weight = -1, output = -1;
  Gemm gemm;
};

IndexMap map_rows(BlockBuilder& b, const Shape& shape, const std::string& name, TensorId input,
                  std::int64_t depth, std::int64_t width) {
  IndexMap maps{input, b.parameter(name + "_weight", Shape::elements(depth, width)),
                b.activation(name, Shape::elements(shape.tokens, width)),
                repeated(shape, {shape.tokens, width, depth})};
  b.forward({name, maps.gemm, {input, maps.weight}, {maps.output}});
  return maps;
}

void undo_map(BlockBuilder& b, const std::string& name, const IndexMap& maps, TensorId gradient) {
  const Gemm gemm = repeated(b.shape(), b.weight_gradient({maps.gemm.n, maps.gemm.k, maps.gemm.m}));
  b.backward_weight(
      {name + "_weight_gradient", gemm, {gradient, maps.input}, {b.parameter_gradient(maps.weight)}});
}

// GEMMs and counts over pairs of a query and a key before it.
struct IndexPairs {
  Gemm scores;      // of all
  Gemm query, key;  // gradients of the kept pairs' scores
  double all = 0, kept = 0;
};

IndexPairs pairs_of(const Indexer& indexer, const Shape& shape) {
  const std::int64_t before = (shape.seq + 1) / 2;  // of the keys, on average
  const std::int64_t kept = std::min(indexer.top_k, before);
  const std::int64_t rows = shape.seq * indexer.heads, width = indexer.head_dim;
  IndexPairs pairs{repeated(shape, {rows, before, width, shape.batch}),
                   repeated(shape, {rows, width, kept, shape.batch}),
                   repeated(shape, {kept, width, rows, shape.batch})};
  const bool of_blocks = indexer.block > 0;
  const double written =
      of_blocks ? static_cast<double>(indexer.heads) / static_cast<double>(indexer.block) : 1;
  pairs.scores.result_bytes = kIndexScoreBytes * written / static_cast<double>(indexer.heads);
  pairs.all = Shape::elements(shape.tokens, before) * written;
  pairs.kept = Shape::elements(shape.tokens, kept);
  return pairs;
}

// A norm of each head, whose weights all heads share.
struct IndexNorm {
  IndexMap of;
  TensorId weight = -1, output = -1;

  static IndexNorm write(BlockBuilder& b, const std::string& name, const IndexMap& of, std::int64_t width) {
    IndexNorm norm{of, b.parameter(name + "_weight", static_cast<double>(width)),
                   b.activation(name + "_output", b[of.output].elements)};
    b.forward({name, Pointwise::norm, {of.output, norm.weight}, {norm.output}});
    return norm;
  }

  void undo(BlockBuilder& b, const std::string& name, TensorId gradient) const {
    const TensorId before = b.scratch_gradient(name + "_gradient", b[of.output].elements);
    b.backward_input({name + "_backward", Pointwise::norm_backward, {gradient, of.output, weight}, {before}});
    b.backward_weight({name + "_weight_gradient",
                       Pointwise::norm_weight_gradient,
                       {gradient, of.output},
                       {b.parameter_gradient(weight)}});
    undo_map(b, name, of, before);
  }
};

TensorId choose_blocks(BlockBuilder& b, const Indexer& indexer, const Shape& shape, const IndexMap& query,
                       const IndexMap& key) {
  const IndexNorm of_query = IndexNorm::write(b, "index_query_norm", query, indexer.head_dim),
                  of_key = IndexNorm::write(b, "index_key_norm", key, indexer.head_dim);
  const IndexPairs pairs = pairs_of(indexer, shape);
  const TensorId scores = b.activation("index_scores", pairs.all, kIndexScoreBytes);
  const TensorId chosen =
      b.activation("chosen_blocks", pairs.kept / static_cast<double>(indexer.block), kIndexBytes);
  b.forward({"index_scores", pairs.scores, {of_query.output, of_key.output}, {scores}});
  b.forward({"index_choice", Pointwise::eager, {scores}, {chosen}});
  b.undo([&b, of_query, of_key, chosen, pairs] {
    const TensorId queries = b.scratch_gradient("index_query_gradient", b[of_query.output].elements),
                   keys = b.scratch_gradient("index_key_gradient", b[of_key.output].elements);
    b.backward_input({"index_query_gradient", pairs.query, {chosen, of_key.output}, {queries}});
    b.backward_input({"index_key_gradient", pairs.key, {chosen, of_query.output}, {keys}});
    of_query.undo(b, "index_query_norm", queries);
    of_key.undo(b, "index_key_norm", keys);
  });
  b.unmeasured(false);
  return chosen;
}

}  // namespace

TensorId choose_keys(BlockBuilder& b, const Indexer& indexer, const Shape& shape, TensorId rows,
                     TensorId queries, std::int64_t query_rank) {
  b.unmeasured(true);
  const std::int64_t heads = indexer.heads, width = indexer.head_dim;
  const TensorId input = every_row(b, shape, rows, shape.hidden);
  const IndexMap query =
      map_rows(b, shape, "index_query", every_row(b, shape, queries, query_rank), query_rank, heads * width);
  const IndexMap key = map_rows(b, shape, "index_key", input, shape.hidden, width);
  if (indexer.block > 0) return choose_blocks(b, indexer, shape, query, key);
  const IndexMap weights = map_rows(b, shape, "index_weights", input, shape.hidden, heads);
  const std::vector<TensorId> norm = {b.parameter("index_norm_weight", static_cast<double>(width)),
                                      b.parameter("index_norm_bias", static_cast<double>(width))};
  const TensorId normed = b.activation("index_key_normed", b[key.output].elements);
  b.forward({"index_norm", Pointwise::layer_norm, {key.output, norm[0], norm[1]}, {normed}});

  const IndexPairs pairs = pairs_of(indexer, shape);
  const TensorId scores = b.activation("index_scores", pairs.all, kIndexScoreBytes);
  const TensorId chosen = b.activation("chosen_keys", pairs.kept, kIndexBytes);
  b.forward({"index_scores", pairs.scores, {query.output, normed, weights.output}, {scores}});
  b.forward({"index_choice", Pointwise::eager, {scores}, {chosen}});
  b.undo([&b, query, key, weights, norm, normed, chosen, pairs] {
    const TensorId of_query = b.scratch_gradient("index_query_gradient", b[query.output].elements);
    const TensorId of_weights = b.scratch_gradient("index_weights_gradient", b[weights.output].elements);
    const TensorId of_key = b.scratch_gradient("index_key_normed_gradient", b[normed].elements);
    const TensorId before_norm = b.scratch_gradient("index_key_gradient", b[normed].elements);
    b.backward_input(
        {"index_query_gradient", pairs.query, {chosen, normed, weights.output}, {of_query, of_weights}});
    b.backward_input({"index_key_gradient", pairs.key, {chosen, query.output, weights.output}, {of_key}});
    b.backward_input({"index_norm_backward",
                      Pointwise::layer_norm_backward,
                      {of_key, key.output, norm[0]},
                      {before_norm}});
    b.backward_weight({"index_norm_weight_gradient",
                       Pointwise::layer_norm_weight_gradient,
                       {of_key, key.output},
                       {b.parameter_gradient(norm[0]), b.parameter_gradient(norm[1])}});
    undo_map(b, "index_query", query, of_query);
    undo_map(b, "index_key", key, before_norm);
    undo_map(b, "index_weights", weights, of_weights);
  });
  b.unmeasured(false);
  return chosen;
}

// Its keys have a separate compressor, through which gradients reach the rows.
TensorId choose_compressed(BlockBuilder& b, const Model& model, const Shape& shape, TensorId rows,
                           TensorId queries) {
  const CompressedAttention& of = *model.compressed;
  const IndexMap query = map_rows(b, shape, "index_query", every_row(b, shape, queries, of.q_rank), of.q_rank,
                                  of.index_heads * of.index_head_dim);
  const IndexMap weights = map_rows(b, shape, "index_weights", every_row(b, shape, rows, shape.hidden),
                                    shape.hidden, of.index_heads);
  const TensorId keys =
      compress(b, shape, {"index_compressor", model.compression, of.index_head_dim, true}, rows);
  // Pairs with compressed keys are fewer by the factor of compression.
  const std::int64_t before = std::max<std::int64_t>(1, shape.seq / model.compression / 2),
                     kept = std::min(of.top_k, before);
  const std::int64_t heads = shape.seq * of.index_heads;
  Gemm all = repeated(shape, {heads, before, of.index_head_dim, shape.batch});
  all.result_bytes = kIndexScoreBytes / static_cast<double>(of.index_heads);
  const Gemm of_query = repeated(shape, {heads, of.index_head_dim, kept, shape.batch}),
             of_key = repeated(shape, {kept, of.index_head_dim, heads, shape.batch});
  const TensorId scores =
      b.activation("index_scores", Shape::elements(shape.tokens, before), kIndexScoreBytes);
  const TensorId chosen = b.activation("chosen_keys", Shape::elements(shape.tokens, kept), kIndexBytes);
  b.forward({"index_scores", all, {query.output, keys, weights.output}, {scores}});
  b.forward({"index_choice", Pointwise::eager, {scores}, {chosen}});
  b.undo([&b, query, weights, keys, chosen, of_query, of_key] {
    const TensorId queries_back = b.scratch_gradient("index_query_gradient", b[query.output].elements),
                   weights_back = b.scratch_gradient("index_weights_gradient", b[weights.output].elements);
    b.backward_input(
        {"index_query_gradient", of_query, {chosen, keys, weights.output}, {queries_back, weights_back}});
    b.backward_input(
        {"index_key_gradient", of_key, {chosen, query.output, weights.output}, {b.new_gradient(keys)}});
    undo_map(b, "index_query", query, queries_back);
    undo_map(b, "index_weights", weights, weights_back);
  });
  return chosen;
}

}  // namespace rehearse
