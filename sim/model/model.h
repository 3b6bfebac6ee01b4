// What is the shape of the network that is trained? Weights and placement are elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// LayerNorm has a weight and a bias, RMSNorm a weight. Cohere's LayerNorm has only a weight, and OLMo's has
// no parameters.
enum class Norm { layer, rms, layer_weight, layer_plain };

// Norms of a transformer layer:
// - before: before both branches;
// - after: after both, ahead of the residual sum (OLMo 2);
// - both: on both sides (Gemma 2);
// - shared: one norm before both branches, which read the same rows (GPT-J);
// - after_sum: after each residual sum (BERT); no norm follows the last layer.
enum class NormPlace : std::uint8_t { before, after, both, shared, after_sum };

// Span of the mean in a norm of queries or keys: one head, with one weight vector for all heads (Qwen3) or
// one for each (Cohere); or all heads at once (OLMo 2).
enum class QkNormSpan : std::uint8_t { head, each_head, all_heads };

enum class Positions {
  rotary,
  learned,  // a table of max_positions x hidden parameters
  alibi,    // slopes inside the attention scores: no parameter and no kernel
  none      // state spaces between give the order of tokens (Nemotron-H)
};

// A transformer layer is attention and then an MLP or experts. Layers of hybrid models (Lieber et al. 2024,
// Jamba; Nemotron-H, NVIDIA 2025, section 2) have one part each, with a norm and a residual sum.
enum class LayerType : std::uint8_t { transformer, mamba, attention, mlp, experts };

// Mixture of experts in place of the MLP, in each `every`-th layer from first_layer on.
struct Experts {
  std::int64_t count = 0;              // routed experts of a layer
  std::int64_t per_token = 0;          // top-k
  std::int64_t ffn_hidden = 0;         // width of one routed expert
  std::int64_t shared_ffn_hidden = 0;  // summed width of the shared experts; 0 = none
  std::int64_t first_layer = 0;        // layers before it are dense
  std::int64_t every = 1;              // layer l >= first_layer is sparse when (l + 1) % every == 0
  bool router_bias = false;            // one correction bias per expert (DeepSeek-V3)
  bool linear_bias = false;            // biases of the router's and all experts' GEMMs (gpt-oss)
  bool clamped = false;                // inputs of the activation are clamped (gpt-oss, swiglu_limit)
  std::int64_t latent = 0;   // width of rows at routed experts, between down and up projections (0: hidden)
  bool latent_norm = false;  // a norm of those rows before the up projection (Kimi K3)
  bool shared_gate = false;  // a sigmoid of one score scales the shared experts' output (Qwen2-MoE)
  // The router, the routed experts and the shared experts each have norms of their own. A scale multiplies
  // the weights of each expert (Gemma 4).
  bool own_norms = false;
  std::string layers = {};  // for each layer, 1 with experts or 0 without; "": the rule above applies

  bool in_all_layers() const { return first_layer == 0 && every == 1 && layers.empty(); }
};

// Multi-head latent attention (DeepSeek-V2, section 2.1).
struct LatentAttention {
  std::int64_t q_rank = 0;  // 0: queries are projected directly
  std::int64_t kv_rank = 0;
  std::int64_t nope_head_dim = 0;
  std::int64_t rope_head_dim = 0;
  std::int64_t v_head_dim = 0;
};

// The mixer of a Mamba-2 layer (Dao and Gu 2024, section 7), behind a short convolution. Each head has a
// state of head_dim x state. Groups of heads share its input and output maps.
struct StateSpace {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;
  std::int64_t state = 0;
  std::int64_t convolution = 4;  // tokens that the convolution spans
  std::int64_t chunk = 128;      // tokens of a chunk, whose scan is a GEMM
  bool norm = true;              // a norm of the scan's output, before the output projection

  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t maps() const { return 2 * groups * state; }
};

// Mixers in place of attention whose time is linear in the sequence:
// - gated_delta_rule: Yang et al. 2024 (arXiv 2412.06464), as in Qwen3-Next;
// - lightning: Qin et al. 2024 (arXiv 2401.04658), as in MiniMax-01;
// - selective_scan: Gu and Dao 2023 (arXiv 2312.00752), Mamba-1, as in Jamba with norms in between;
// - short_convolution: a gated convolution alone, as in LFM2.
enum class RecurrenceKind : std::uint8_t {
  gated_delta_rule,
  kimi_delta,  // with a decay of each key channel (Kimi Linear, 2025, arXiv 2510.26692)
  lightning,
  selective_scan,
  short_convolution
};

// In a selective scan, each channel is a value head of width 1, and the keys are the state.
struct Recurrence {
  RecurrenceKind kind = RecurrenceKind::gated_delta_rule;
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t convolution = 0;  // tokens that the convolution spans; 0: none
  std::int64_t chunk = 64;       // tokens of a chunk, whose scan is a GEMM
  std::int64_t step_rank = 0;    // rank of the steps of the selective scan
  bool inner_norms = false;      // norms of its steps and maps (Jamba)
  bool full_rank_gate = true;    // kimi_delta: the gate is one matrix; else two factors of rank key_head_dim

  std::int64_t keys() const { return key_heads * key_head_dim; }
  std::int64_t values() const { return value_heads * value_head_dim; }
};

// Scores of small heads choose the keys that a query sees (DeepSeek-V3.2, 2025, equations 1 and 2).
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;  // number of keys that a query sees
  // For each layer, 1 with its own scores or 0 with those of the last such layer; "": all 1.
  std::string layers = {};
  std::int64_t block = 0;  // keys that are chosen together, by the highest score (MiniMax-M3); 0: one by one

  // True: layers without scores reuse the keys chosen by an earlier layer. False: they see all keys.
  bool is_shared() const { return block == 0; }
};

// Attention with one key for all heads, which is also the value. A query sees keys within a window, and
// compressed keys that stand for LayerShape::compression tokens each. Where that is `sparse` tokens, it sees
// the top_k compressed keys by score; else it sees all of them (DeepSeek-V4, 2026, section 2.3). Groups of
// heads share the first projection of the output.
struct CompressedAttention {
  std::int64_t q_rank = 0;
  std::int64_t groups = 0, group_rank = 0;
  std::int64_t sparse = 4;
  std::int64_t index_heads = 0, index_head_dim = 0, top_k = 0;
};

// Sizes that may differ between layers of one model.
struct LayerShape {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t v_head_dim = 0;  // width of a value head; 0: head_dim
  std::int64_t ffn_hidden = 0;
  bool attention_sinks = false;  // a learned score per head takes part in the softmax (gpt-oss)
  bool values_are_keys = false;  // values are the keys before their norm and rotation (Gemma 4)
  std::int64_t compression = 0;  // tokens per compressed key, beside the keys of the window; 0: no such keys
  bool hashes_experts = false;   // the token id chooses the experts, no score
  bool shares_keys = false;      // keys and values come from an earlier layer (Gemma 3n)

  bool operator==(const LayerShape&) const = default;
};

struct Tower;

struct Model : LayerShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  // `shapes`: sizes of layers that differ from the model's own. `shape_of_layer`: for each layer, 0 for the
  // model's own sizes, else the index into `shapes`, counted from 1.
  std::vector<LayerShape> shapes;
  std::vector<std::int32_t> shape_of_layer;
  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  Positions positions = Positions::rotary;
  std::int64_t position_offset = 0;  // rows of the position table ahead of the first token's (OPT)
  bool embedding_norm = false;       // a norm after the embedding (BLOOM)
  std::int64_t token_types = 0;      // rows of the token-type table, added to the token embedding (BERT)
  // The first encoder_layers layers are an encoder, which sees all tokens. Each later layer has a second
  // attention, to the encoder's output (T5). 0: there is no encoder beside a decoder.
  std::int64_t encoder_layers = 0;
  // Rows of all tables of attention-score biases. A row has one bias per head (T5).
  std::int64_t relative_positions = 0;
  bool bidirectional = false;           // no causal mask (encoders)
  bool gated_mlp = true;                // SwiGLU: gate and up projection; else one up projection and GELU
  bool squared_relu = false;            // in place of GELU
  std::int64_t activation_weights = 0;  // weights of the activation of each MLP (Apertus's xIELU)
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;       // a bias of the logits (GPT-J)
  bool head_transform = false;  // a linear layer, its activation and a norm before the logits (BERT)
  bool qk_norm = false;         // norms of queries and keys
  QkNormSpan qk_norm_span = QkNormSpan::head;
  // These norms have no weights, and only layers with rotary positions have them (Llama 4).
  bool qk_norm_plain = false;
  bool tied_embeddings = false;    // the head uses the embedding table
  bool parallel_residual = false;  // attention and MLP read the same input (GPT-NeoX)
  // Besides their wavelengths, rotary positions are scaled by a factor (Peng et al. 2023, YaRN).
  bool yarn = false;
  bool dropout = false;         // residual, embedding and (unfused) attention dropout are in the graph
  std::int64_t window = 0;      // sliding attention window; 0 = full
  std::int64_t full_every = 0;  // layer l sees all keys when (l + 1) % full_every == 0; 0: none does
  // For each layer, 1 with the window or 0 with all keys; "": full_every is the rule.
  std::string windows;
  // For each layer, 1 with the model's rotary positions or 0 without; "": all layers have them.
  std::string rotary;
  bool caps_scores = false;       // a tanh inside the attention kernel limits the scores (Gemma 2)
  bool caps_logits = false;       // a tanh limits the logits
  bool window_in_chunks = false;  // the window is the query's chunk of `window` tokens (Llama 4)
  bool attention_gate = false;    // a sigmoid gate as wide as the attention output scales it (Qwen3-Next)
  bool gates_heads = false;       // that gate has one output per head (Step 3.5)
  bool value_norm = false;        // a norm of values without weights (Gemma 4)
  // Multi-token prediction (MTP) layers after the last layer (DeepSeek-V3, section 2.2).
  std::int64_t mtp_layers = 0;
  // A letter for each layer of a hybrid, as in Megatron-LM's --hybrid-layer-pattern:
  // M Mamba, * attention, - MLP, E experts. mtp_pattern: the same for the layers inside an MTP layer.
  // "": all layers are transformer layers, and an MTP layer is like the last one.
  std::string pattern, mtp_pattern;
  // The state space stands beside attention in each layer and reads the same rows (Falcon-H1).
  bool mamba_beside_attention = false;
  // Layers between residual sums that are kept. Each branch reads a weighted sum of the rows and of the sums
  // kept before it (Kimi K3, attn_res_block_size). 0: a branch reads only the rows.
  std::int64_t depth_block = 0;
  // Width and table rows of an embedding of the token that each layer has for itself. The layer adds a
  // projection of it (Gemma 3n). 0: there is none.
  std::int64_t per_layer_width = 0, per_layer_vocab = 0;
  // alternating: copies of the rows. A layer computes one copy, and predicts and corrects the copies around
  // it (Baykal et al. 2023, arXiv 2301.13310, AltUp). laurel_rank: rank of a linear branch beside attention
  // (LAuReL, arXiv 2411.07501).
  std::int64_t alternating = 1, laurel_rank = 0;
  // Copies of the rows between layers. Each branch reads one mixture of them and writes by another (Zhu et
  // al. 2024, arXiv 2409.19606, hyper-connections).
  std::int64_t streams = 1;
  bool mtp_repeated = false;  // one MTP layer runs mtp_layers times
  std::optional<StateSpace> state_space;
  std::optional<Recurrence> recurrence;
  // For each transformer layer, 1 with the recurrence or 0 with attention; "": all layers attend.
  std::string recurrent;
  std::optional<Indexer> indexer;  // it chooses the keys of attention
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;
  std::optional<CompressedAttention> compressed;
  std::vector<Tower> towers;  // of a multimodal model; a step has them only where Plan::images is not 0
  std::vector<std::string> not_modelled;  // keys of the input that change cost and that no formula reads
  std::vector<std::string> warnings;      // doubtful values of the input, with the effect

  LayerType type_of(std::int64_t layer) const;
  std::vector<LayerType> types_of_module() const;  // inside one MTP layer
  bool has_layer_of(LayerType type) const;
  std::int64_t depth_sums() const;                   // sums that a branch reads on average, beside the rows
  bool attends() const;                              // does any layer attend?
  bool has_mlp() const;                              // does any layer have an MLP, beside or without experts?
  bool is_sparse(std::int64_t layer) const;          // does this layer have experts?
  std::int64_t window_of(std::int64_t layer) const;  // 0: all keys
  bool encodes(std::int64_t layer) const { return layer < encoder_layers; }
  bool rotates(std::int64_t layer) const;           // does it have rotary positions, if the model has any?
  bool recurs(std::int64_t layer) const;            // does a recurrence replace its attention?
  bool scores_keys(std::int64_t layer) const;       // does it have an indexer of its own?
  std::int32_t shape_of(std::int64_t layer) const;  // 0: the model's own sizes
  Model shaped(std::int32_t shape) const;           // the model with this shape in all layers
  const LayerShape& own_shape() const { return *this; }
  std::int64_t value_width() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t position_rows() const { return max_positions + position_offset; }
  bool norms_before() const { return norm_place != NormPlace::after && norm_place != NormPlace::after_sum; }
  bool norms_after() const { return norm_place == NormPlace::after || norm_place == NormPlace::both; }
  // An MTP layer also reads the embedding table and the head: its rank holds both.
  bool shares_embedding() const { return tied_embeddings || mtp_layers > 0; }
};

// Maps a tower's rows to tokens of the language model: a norm, and linear layers with a GELU before the last.
struct Projector {
  std::int64_t merged = 1;  // rows that are merged into one token: concatenated or averaged
  bool averages = false;
  bool has_norm = false;
  Norm norm = Norm::layer;
  bool norms_merged = false;         // the norm is over merged rows, not over single ones
  std::vector<std::int64_t> widths;  // output width of each linear layer; the last is the language model's
  bool bias = true;                  // a bias of each linear layer
  // Number of additional projectors, for rows of earlier layers of the tower. Their norm is over merged rows,
  // and their outputs go to early layers of the language model (Qwen3-VL's deepstack).
  std::int64_t earlier = 0;
};

// A vision transformer whose outputs replace token embeddings (Dosovitskiy et al. 2021, equations 1 to 3).
struct Tower {
  std::string key;  // its key in the model's file: "vision_config"
  // The layers alone, without vocabulary and head. max_positions: rows of the table of learned positions,
  // which may stand beside rotary ones. 0: there is no table.
  Model layers;
  bool is_known = false;          // the file describes it well enough for a step
  std::int64_t patch_inputs = 0;  // values of a patch, which a linear layer maps to a row
  bool patch_bias = false;
  bool class_row = false;  // a learned row ahead of an image's patches
  bool norm_before = false, norm_after = false;
  Projector projector;
  std::int64_t image_tokens = 0;  // tokens of the language model per image; 0: the image decides
  bool is_exact = false;          // all parts are known; else the most common projector is assumed
};

// The first tower that can be part of a step; nullptr: none.
const Tower* modelled_tower(const Model& model);

// All parameters of a tower and its projectors.
std::int64_t count_tower(const Tower& tower);

// Notes on towers that a step omits, with their sizes and the workaround, and on towers with assumed parts.
std::vector<std::string> tower_notes(const Model& model, bool has_images);

// Trainable parameters by part; every figure counts elements.
struct ParameterCount {
  std::int64_t embedding = 0;   // token table
  std::int64_t positions = 0;   // learned position table
  std::int64_t attention = 0;   // one layer
  std::int64_t mlp = 0;         // one dense layer
  std::int64_t experts = 0;     // one sparse layer: router, routed and shared experts
  std::int64_t mamba = 0;       // one layer of a state space, or of a selective scan that is the whole layer
  std::int64_t recurrence = 0;  // one mixer in place of attention
  std::int64_t indexer = 0;     // one indexer beside attention
  // One layer: gate and projection of its embedding, copies of rows, a linear branch.
  std::int64_t per_layer = 0;
  std::int64_t cross = 0;  // one decoder layer beside an encoder: a second attention and its norm
  std::int64_t norms = 0;  // one layer of a transformer
  std::int64_t depth = 0;  // one layer: weights of sums over depth, or of streams
  std::int64_t final_norm = 0;
  std::int64_t head = 0;           // 0 when tied
  std::int64_t mtp = 0;            // one MTP layer, without the table and the head that it shares
  std::int64_t dense_layers = 0;   // layers with an MLP
  std::int64_t sparse_layers = 0;  // layers with experts
  std::int64_t total = 0;          // the language model without its towers
  std::int64_t active = 0;         // total without the routed experts that a token does not visit
};

ParameterCount count_parameters(const Model& model);

// InputError for a shape that no network can have (heads not a multiple of kv_heads, zero layers, ...). The
// error cites `file`.
void require_valid(const Model& model, const std::string& file);

}  // namespace rehearse
