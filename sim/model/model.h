// The network's shape: what is trained. Weights and placement are elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// LayerNorm has a weight and a bias, RMSNorm a weight. Cohere's LayerNorm has a weight alone, OLMo's nothing.
enum class Norm { layer, rms, layer_weight, layer_plain };

// Where a layer of a transformer has norms: before both branches; after both, ahead of the residual sum (OLMo
// 2); on both sides (Gemma 2); one before both branches, which read the same rows (GPT-J); or after each
// residual sum (BERT), where none follows the last layer.
enum class NormPlace : std::uint8_t { before, after, both, shared, after_sum };

// A norm of queries or keys takes its mean over a head, with one weight vector for all heads (Qwen3) or one
// for each (Cohere); or over all heads at once (OLMo 2).
enum class QkNormSpan : std::uint8_t { head, each_head, all_heads };

enum class Positions {
  rotary,
  learned,  // a table of max_positions x hidden parameters
  alibi,    // slopes inside the attention scores: no parameter and no kernel
  none      // the order of tokens is told by state spaces between (Nemotron-H)
};

// Layers of a transformer are attention and then an MLP, or experts. Hybrid models (Lieber et al. 2024,
// Jamba; Nemotron-H, NVIDIA 2025, section 2) have layers of one part each, with a norm and a residual sum.
enum class LayerType : std::uint8_t { transformer, mamba, attention, mlp, experts };

// Mixture of experts in place of the MLP of every layer from first_layer on, each `every`-th.
struct Experts {
  std::int64_t count = 0;              // routed experts of a layer
  std::int64_t per_token = 0;          // top-k
  std::int64_t ffn_hidden = 0;         // width of one routed expert
  std::int64_t shared_ffn_hidden = 0;  // summed width of the shared experts; 0 = none
  std::int64_t first_layer = 0;        // layers before it are dense
  std::int64_t every = 1;              // layer l >= first_layer is sparse when (l + 1) % every == 0
  bool router_bias = false;            // one correction bias per expert (DeepSeek-V3)
  bool linear_bias = false;            // on the router's and all experts' GEMMs (gpt-oss)
  bool clamped = false;      // what is activated is held within limits before (gpt-oss, swiglu_limit)
  std::int64_t latent = 0;   // width of the rows that routed experts see, down and up again (0: hidden)
  bool latent_norm = false;  // of those rows on their way up (Kimi K3)
  bool shared_gate = false;  // a sigmoid of one score scales the shared experts (Qwen2-MoE)
  // The router, the routed and the shared experts each have norms of their own, and a scale multiplies the
  // weights of each expert (Gemma 4).
  bool own_norms = false;
  std::string layers = {};  // where no rule tells: of each layer, 1 with experts or 0 without

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

// What scans the sequence in a Mamba-2 layer (Dao and Gu 2024, section 7): a state of head_dim x state for
// each head, whose input and output maps groups of heads share, behind a short convolution.
struct StateSpace {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t groups = 0;
  std::int64_t state = 0;
  std::int64_t convolution = 4;  // tokens that it reaches
  std::int64_t chunk = 128;      // tokens whose scan is a GEMM
  bool norm = true;              // of what is scanned, before the output projection

  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t maps() const { return 2 * groups * state; }
};

// What mixes tokens in attention's place, in time linear in the sequence. gated_delta_rule: Yang et al. 2024
// (arXiv 2412.06464), as Qwen3-Next has it. lightning: Qin et al. 2024 (arXiv 2401.04658), as MiniMax-01 has
// it. selective_scan: Gu and Dao 2023 (arXiv 2312.00752), Mamba-1, as Jamba has it with norms in between.
// short_convolution: a gated convolution alone, as LFM2 has it.
enum class RecurrenceKind : std::uint8_t {
  gated_delta_rule,
  kimi_delta,  // with a decay for each channel of the keys (Kimi Linear, 2025, arXiv 2510.26692)
  lightning,
  selective_scan,
  short_convolution
};

// Of a selective scan each channel is a value head of one, and its keys are the state.
struct Recurrence {
  RecurrenceKind kind = RecurrenceKind::gated_delta_rule;
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t convolution = 0;  // tokens that it reaches; 0: none
  std::int64_t chunk = 64;       // tokens whose scan is a GEMM
  std::int64_t step_rank = 0;    // of the selective scan's steps
  bool inner_norms = false;      // of its steps and maps (Jamba)
  bool full_rank_gate = true;    // of kimi_delta: else the gate is a product of two matrices of a head's rank

  std::int64_t keys() const { return key_heads * key_head_dim; }
  std::int64_t values() const { return value_heads * value_head_dim; }
};

// Which keys a query sees is chosen by scores of small heads (DeepSeek-V3.2, 2025, equations 1 and 2).
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;   // keys
  std::string layers = {};  // of each layer, 1 with scores of its own or 0 with those of the last; "": all 1
  std::int64_t block = 0;   // keys that are chosen together (MiniMax-M3), by the highest score; 0: one by one

  // Layers without scores see all keys where no layer hands on its choice.
  bool is_shared() const { return block == 0; }
};

// Attention whose one key serves all heads, as its value, too. A query sees keys within a window, and keys
// that stand for so many tokens each (LayerShape::compression): all of those, or where they stand for
// `sparse` tokens the top_k of a score (DeepSeek-V4, 2026, section 2.3). Groups of heads share the output's
// first projection.
struct CompressedAttention {
  std::int64_t q_rank = 0;
  std::int64_t groups = 0, group_rank = 0;
  std::int64_t sparse = 4;
  std::int64_t index_heads = 0, index_head_dim = 0, top_k = 0;
};

// The sizes that layers of one model may have of their own.
struct LayerShape {
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t v_head_dim = 0;  // of values; 0: head_dim
  std::int64_t ffn_hidden = 0;
  bool attention_sinks = false;  // a learned score a head that takes part in the softmax (gpt-oss)
  bool values_are_keys = false;  // values are the keys before their norm and rotation (Gemma 4)
  std::int64_t compression = 0;  // tokens that a key stands for beside those of the window; 0: there are none
  bool hashes_experts = false;   // the token's word chooses its experts, no score
  bool shares_keys = false;      // keys and values are those of a layer before (Gemma 3n)

  bool operator==(const LayerShape&) const = default;
};

struct Tower;

struct Model : LayerShape {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  // Of layers whose sizes are not these; and of each layer, 0 or which of the shapes it has, from 1 on.
  std::vector<LayerShape> shapes;
  std::vector<std::int32_t> shape_of_layer;
  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  Positions positions = Positions::rotary;
  std::int64_t position_offset = 0;  // rows of the position table before the first token's (OPT)
  bool embedding_norm = false;       // after the embedding (BLOOM)
  std::int64_t token_types = 0;      // rows of a table for kinds of tokens, added to the words (BERT)
  // The first so many layers are an encoder's, which sees all tokens. The others attend to its output, too,
  // in a second attention each (T5); 0: there is no encoder beside a decoder.
  std::int64_t encoder_layers = 0;
  std::int64_t relative_positions = 0;  // of tables of biases of attention scores: rows x heads (T5)
  bool bidirectional = false;           // attention has no causal mask (encoders)
  bool gated_mlp = true;                // SwiGLU: gate and up projection; else one up projection and GELU
  bool squared_relu = false;            // in place of GELU
  std::int64_t activation_weights = 0;  // of the activation of each MLP (Apertus's xIELU)
  bool qkv_bias = false;
  bool attention_out_bias = false;
  bool mlp_bias = false;
  bool head_bias = false;       // of the logits (GPT-J)
  bool head_transform = false;  // a linear layer, its activation and a norm before the logits (BERT)
  bool qk_norm = false;         // norms of queries and keys
  QkNormSpan qk_norm_span = QkNormSpan::head;
  bool qk_norm_plain = false;      // without weights, and in layers with rotary positions alone (Llama 4)
  bool tied_embeddings = false;    // the head uses the embedding table
  bool parallel_residual = false;  // attention and MLP read the same input (GPT-NeoX)
  bool yarn = false;  // rotary positions scaled by a factor beside their wavelengths (Peng et al. 2023, YaRN)
  bool dropout = false;         // residual, embedding and (unfused) attention dropout are in the graph
  std::int64_t window = 0;      // sliding attention window; 0 = full
  std::int64_t full_every = 0;  // layer l sees all keys nonetheless when (l + 1) % full_every == 0; 0: none
  // Where that is no rule: of each layer, 1 with the window or 0 with all keys.
  std::string windows;
  // Of each layer, 1 with the model's rotary positions or 0 without; "": all have them.
  std::string rotary;
  bool caps_scores = false;       // of attention, by a tanh inside of its kernel (Gemma 2)
  bool caps_logits = false;       // by a tanh
  bool window_in_chunks = false;  // its keys are those of the query's chunk of as many tokens (Llama 4)
  bool attention_gate = false;    // a sigmoid of as many outputs again scales what is attended (Qwen3-Next)
  bool gates_heads = false;       // that sigmoid has one output a head (Step 3.5)
  bool value_norm = false;        // a norm of values without weights (Gemma 4)
  std::int64_t mtp_layers = 0;    // multi-token prediction (DeepSeek-V3, section 2.2): modules after the last
  // Of a hybrid a letter for each layer, as in Megatron-LM's --hybrid-layer-pattern: M Mamba, * attention,
  // - MLP, E experts; and of a module's layers. "": all are a transformer's, and a module's is like the last.
  std::string pattern, mtp_pattern;
  // The state space stands beside attention in each layer, and reads the same rows (Falcon-H1).
  bool mamba_beside_attention = false;
  // Each branch reads a weighted sum of the sums after every so many layers before it and of the rows (Kimi
  // K3, attn_res_block_size); 0: it reads the rows.
  std::int64_t depth_block = 0;
  // Each layer adds what it makes of its own embedding of the word, so wide, whose table has so many rows
  // (Gemma 3n); 0: there is none.
  std::int64_t per_layer_width = 0, per_layer_vocab = 0;
  // Copies of the rows that layers predict and correct around the one that they compute (Baykal et al. 2023,
  // arXiv 2301.13310, AltUp); and the rank of a linear branch beside attention (LAuReL, arXiv 2411.07501).
  std::int64_t alternating = 1, laurel_rank = 0;
  // Copies of the rows between layers, which each branch reads by a mixture and writes by another (Zhu et al.
  // 2024, arXiv 2409.19606, hyper-connections).
  std::int64_t streams = 1;
  bool mtp_repeated = false;  // the modules are one, that runs again and again
  std::optional<StateSpace> state_space;
  std::optional<Recurrence> recurrence;
  // Of each layer of a transformer, 1 with the recurrence or 0 with attention; "": all attend.
  std::string recurrent;
  std::optional<Indexer> indexer;  // of latent attention
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;
  std::optional<CompressedAttention> compressed;
  std::vector<Tower> towers;              // of a multimodal model: in a step only where Plan::images is not 0
  std::vector<std::string> not_modelled;  // keys of the input that change cost and that no formula here reads
  std::vector<std::string> warnings;      // values of the input that were doubted, with the effect

  LayerType type_of(std::int64_t layer) const;
  std::vector<LayerType> types_of_module() const;  // of one module of multi-token prediction
  bool has_layer_of(LayerType type) const;
  std::int64_t depth_sums() const;                   // that a branch reads on average, beside the rows
  bool attends() const;                              // in any layer
  bool has_mlp() const;                              // in any layer, beside or without experts
  bool is_sparse(std::int64_t layer) const;          // does this layer have experts?
  std::int64_t window_of(std::int64_t layer) const;  // 0: all keys
  bool encodes(std::int64_t layer) const { return layer < encoder_layers; }
  bool rotates(std::int64_t layer) const;           // unless its positions are none
  bool recurs(std::int64_t layer) const;            // has it the recurrence in attention's place?
  bool scores_keys(std::int64_t layer) const;       // has it an indexer of its own?
  std::int32_t shape_of(std::int64_t layer) const;  // 0: the model's own sizes
  Model shaped(std::int32_t shape) const;           // all layers have this shape
  const LayerShape& own_shape() const { return *this; }
  std::int64_t value_width() const { return v_head_dim > 0 ? v_head_dim : head_dim; }
  std::int64_t position_rows() const { return max_positions + position_offset; }
  bool norms_before() const { return norm_place != NormPlace::after && norm_place != NormPlace::after_sum; }
  bool norms_after() const { return norm_place == NormPlace::after || norm_place == NormPlace::both; }
  // A module of multi-token prediction reads the embedding table and the head again: its rank holds both.
  bool shares_embedding() const { return tied_embeddings || mtp_layers > 0; }
};

// Maps a tower's rows to tokens of the language model: a norm, linear layers and a GELU before the last one.
struct Projector {
  std::int64_t merged = 1;  // rows that become one token, side by side or as their mean
  bool averages = false;
  bool has_norm = false;
  Norm norm = Norm::layer;
  bool norms_merged = false;         // the norm is over merged rows
  std::vector<std::int64_t> widths;  // of the outputs of each linear layer; the last is the language model's
  bool bias = true;                  // on each of them
  std::int64_t earlier = 0;          // projectors more, whose norm is over merged rows, of rows of earlier
                                     // layers, for early layers of the language model (Qwen3-VL's deepstack)
};

// A vision transformer whose outputs take the place of words (Dosovitskiy et al. 2021, equations 1 to 3).
struct Tower {
  std::string key;  // of the model's file: "vision_config"
  // The layers alone, with neither vocabulary nor head. max_positions: rows of the table of learned
  // positions, which may stand beside rotary ones; 0: there is none.
  Model layers;
  bool is_known = false;          // the file tells enough to be part of a step
  std::int64_t patch_inputs = 0;  // numbers of a patch, which a linear layer maps to a row
  bool patch_bias = false;
  bool class_row = false;  // learned, ahead of an image's patches
  bool norm_before = false, norm_after = false;
  Projector projector;
  std::int64_t image_tokens = 0;  // of the language model, for an image; 0: the image decides
  bool is_exact = false;          // all parts are known; else the projector is taken for the commonest
};

// The first tower that can be part of a step; nullptr: there is none.
const Tower* modelled_tower(const Model& model);

// All parameters of a tower and its projectors.
std::int64_t count_tower(const Tower& tower);

// Which towers are left out of a step, with their sizes and the way on; which are modelled only roughly.
std::vector<std::string> tower_notes(const Model& model, bool has_images);

// Trainable parameters by part; every figure counts elements.
struct ParameterCount {
  std::int64_t embedding = 0;   // token table
  std::int64_t positions = 0;   // learned position table
  std::int64_t attention = 0;   // one layer
  std::int64_t mlp = 0;         // one dense layer
  std::int64_t experts = 0;     // one sparse layer: router, routed and shared experts
  std::int64_t mamba = 0;       // one layer of a state space, or of a selective scan alone
  std::int64_t recurrence = 0;  // in attention's place
  std::int64_t indexer = 0;     // beside latent attention
  std::int64_t per_layer = 0;  // an embedding's gate and projection, copies and a linear branch, of one layer
  std::int64_t cross = 0;      // a second attention and its norm, of a decoder's layer beside an encoder
  std::int64_t norms = 0;      // one layer of a transformer
  std::int64_t depth = 0;      // weights of sums over depth, or of streams, of one layer
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // 0 when tied
  std::int64_t mtp = 0;   // one module of multi-token prediction, less the table and the head that it shares
  std::int64_t dense_layers = 0;   // with an MLP
  std::int64_t sparse_layers = 0;  // with experts
  std::int64_t total = 0;          // of the language model: towers are apart
  std::int64_t active = 0;         // total less the routed experts that a token does not visit
};

ParameterCount count_parameters(const Model& model);

// InputError for a shape that no network can have (heads not a multiple of kv_heads, zero layers, ...);
// `file` is cited.
void require_valid(const Model& model, const std::string& file);

}  // namespace rehearse
