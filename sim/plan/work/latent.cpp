#include "plan/work/blocks.h"
#include "plan/work/pointwise.h"
#include "plan/work/tensor_parallel.h"

namespace rehearse {

namespace {

struct Queries {
  TensorId heads = -1, compressed = -1;
};

Queries project_queries(BlockBuilder& b, const Shape& shape, const LatentAttention& latent, TensorId input,
                        bool rerun) {
  const std::int64_t width = shape.heads * (latent.nope_head_dim + latent.rope_head_dim);
  ColumnLinear up{"query_up", input};
  std::size_t first = b.forward_kernels();
  if (latent.q_rank > 0) {
    ColumnLinear down{"query_down", input};
    down.weight = b.parameter("query_down_weight", Shape::elements(shape.hidden, latent.q_rank));
    down.outputs = {{"query_latent", latent.q_rank}};
    const TensorId compressed = replicated_linear(b, shape, down).front();
    first = b.forward_kernels();
    up.input = normalise(b, "query_norm", Norm::rms, compressed, latent.q_rank);
    up.input_width = latent.q_rank;
  }
  const std::int64_t depth = latent.q_rank > 0 ? latent.q_rank : shape.hidden;
  up.weight = b.parameter("query_up_weight", Shape::elements(depth, width));
  up.outputs = {{"query", width}};
  const TensorId query = column_linear(b, shape, up).front();
  if (rerun) b.rerun_from(first);
  return {query, latent.q_rank > 0 ? up.input : TensorId{-1}};
}

struct Compressed {
  TensorId keys_and_values = -1;  // of this rank's heads
  TensorId rope_key = -1;         // one for all heads
};

Compressed project_keys_and_values(BlockBuilder& b, const Shape& shape, const LatentAttention& latent,
                                   TensorId input, bool rerun) {
  ColumnLinear down{"kv_down", input};
  down.weight =
      b.parameter("kv_down_weight", Shape::elements(shape.hidden, latent.kv_rank + latent.rope_head_dim));
  down.outputs = {{"kv_latent", latent.kv_rank}, {"rope_key", latent.rope_head_dim}};
  const std::vector<TensorId> latents = replicated_linear(b, shape, down);
  const TensorId rope_key = all_rows(b, shape, latents[1], latent.rope_head_dim);

  const std::size_t first = b.forward_kernels();
  const std::int64_t width = shape.heads * (latent.nope_head_dim + latent.v_head_dim);
  ColumnLinear up{"kv_up", normalise(b, "kv_norm", Norm::rms, latents[0], latent.kv_rank)};
  up.input_width = latent.kv_rank;
  up.weight = b.parameter("kv_up_weight", Shape::elements(latent.kv_rank, width));
  up.outputs = {{"keys_and_values", width}};
  const TensorId keys_and_values = column_linear(b, shape, up).front();
  if (rerun) b.rerun_from(first);
  return {keys_and_values, rope_key};
}

// Each rank's heads contribute a part of the gradient of the key that all heads share.
void share_rope_gradient(BlockBuilder& b, TensorId rope_key, TensorId part) {
  b.backward_input({"rope_key_gradient_all_reduce",
                    Collective{CollectiveOp::all_reduce, CommGroup::tensor, b[rope_key].bytes()},
                    {part},
                    {b.new_gradient(rope_key)}});
}

}  // namespace

Heads latent_heads(BlockBuilder& b, const Model& model, const Plan& plan, const Shape& shape,
                   TensorId input) {
  const LatentAttention& latent = *model.latent;
  const std::int64_t width = latent.nope_head_dim + latent.rope_head_dim;
  const bool rerun = reruns(plan, RecomputeModule::mla_up_proj);
  const auto [projected, compressed] = project_queries(b, shape, latent, input, rerun);
  const TensorId query = projected;  // a structured binding is not captured
  const Compressed kv = project_keys_and_values(b, shape, latent, input, rerun);

  Heads heads{b.activation("query_rotated", b[query].elements),
              b.activation("key", Shape::elements(shape.tokens, shape.heads * width)),
              b.activation("value", Shape::elements(shape.tokens, shape.heads * latent.v_head_dim)), width,
              latent.v_head_dim};
  heads.compressed_query = compressed;
  const std::size_t rotary = b.forward_kernels();
  b.forward({"rotary",
             Pointwise::latent_rotary,
             {query, kv.rope_key, kv.keys_and_values},
             {heads.query, heads.key, heads.value}});
  if (rerun) b.rerun_from(rotary);
  b.undo([&b, shape, query, kv, heads] {
    const std::vector<TensorId> reads = {b.gradient_of(heads.query), b.gradient_of(heads.key),
                                         b.gradient_of(heads.value)};
    const bool all_reduce = shape.tp > 1 && !shape.sequence_parallel;
    const TensorId rope = all_reduce
                              ? b.scratch_gradient("rope_key_gradient_partial", b[kv.rope_key].elements)
                              : b.new_gradient(kv.rope_key);
    b.backward_input({"rotary_backward",
                      Pointwise::latent_rotary_backward,
                      reads,
                      {b.new_gradient(query), rope, b.new_gradient(kv.keys_and_values)}});
    if (all_reduce) share_rope_gradient(b, kv.rope_key, rope);
  });
  return heads;
}

}  // namespace rehearse
