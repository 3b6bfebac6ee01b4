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
  bool shared_gate = false;  // a sigmoid of one score scales the shared experts (Qwen2-MoE)
  std::string layers = {};   // where no rule tells: of each layer, 1 with experts or 0 without

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

  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t maps() const { return 2 * groups * state; }
};

// What mixes tokens in attention's place, in time linear in the sequence. gated_delta_rule: Yang et al. 2024
// (arXiv 2412.06464), as Qwen3-Next has it. lightning: Qin et al. 2024 (arXiv 2401.04658), as MiniMax-01 has
// it. selective_scan: Gu and Dao 2023 (arXiv 2312.00752), Mamba-1, as Jamba has it with norms in between.
// short_convolution: a gated convolution alone, as LFM2 has it.
enum class RecurrenceKind : std::uint8_t { gated_delta_rule, lightning, selective_scan, short_convolution };

// Of a selective scan each channel is a value head of one, and its keys are the state.
struct Recurrence {
  RecurrenceKind kind = RecurrenceKind::gated_delta_rule;
  std::int64_t key_heads = 0, value_heads = 0;
  std::int64_t key_head_dim = 0, value_head_dim = 0;
  std::int64_t convolution = 0;  // tokens that it reaches; 0: none
  std::int64_t chunk = 64;       // tokens whose scan is a GEMM
  std::int64_t step_rank = 0;    // of the selective scan's steps
  bool inner_norms = false;      // of its steps and maps (Jamba)

  std::int64_t keys() const { return key_heads * key_head_dim; }
  std::int64_t values() const { return value_heads * value_head_dim; }
};

// Which keys a query sees is chosen by scores of small heads (DeepSeek-V3.2, 2025, equations 1 and 2).
struct Indexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t top_k = 0;
  std::string layers = {};  // of each layer, 1 with scores of its own or 0 with those of the last; "": all 1
};

struct Model {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn_hidden = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  Norm norm = Norm::rms;
  NormPlace norm_place = NormPlace::before;
  Positions positions = Positions::rotary;
  std::int64_t position_offset = 0;  // rows of the position table before the first token's (OPT)
  bool embedding_norm = false;       // after the embedding (BLOOM)
  std::int64_t token_types = 0;      // rows of a table for kinds of tokens, added to the words (BERT)
  bool bidirectional = false;        // attention has no causal mask (encoders)
  bool gated_mlp = true;             // SwiGLU: gate and up projection; else one up projection and GELU
  bool squared_relu = false;         // in place of GELU
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
  bool attention_sinks = false;   // a learned score a head that takes part in the softmax (gpt-oss)
  std::int64_t mtp_layers = 0;    // multi-token prediction (DeepSeek-V3, section 2.2): modules after the last
  // Of a hybrid a letter for each layer, as in Megatron-LM's --hybrid-layer-pattern: M Mamba, * attention,
  // - MLP, E experts; and of a module's layers. "": all are a transformer's, and a module's is like the last.
  std::string pattern, mtp_pattern;
  bool mtp_repeated = false;  // the modules are one, that runs again and again
  std::optional<StateSpace> state_space;
  std::optional<Recurrence> recurrence;
  // Of each layer of a transformer, 1 with the recurrence or 0 with attention; "": all attend.
  std::string recurrent;
  std::optional<Indexer> indexer;  // of latent attention
  std::optional<Experts> experts;
  std::optional<LatentAttention> latent;
  std::vector<std::string> not_modelled;  // keys of the input that change cost and that no formula here reads
  std::vector<std::string> warnings;      // values of the input that were doubted, with the effect

  LayerType type_of(std::int64_t layer) const;
  std::vector<LayerType> types_of_module() const;  // of one module of multi-token prediction
  bool has_layer_of(LayerType type) const;
  bool attends() const;                              // in any layer
  bool has_mlp() const;                              // in any layer, beside or without experts
  bool is_sparse(std::int64_t layer) const;          // does this layer have experts?
  std::int64_t window_of(std::int64_t layer) const;  // 0: all keys
  bool rotates(std::int64_t layer) const;            // unless its positions are none
  bool recurs(std::int64_t layer) const;             // has it the recurrence in attention's place?
  bool scores_keys(std::int64_t layer) const;        // has it an indexer of its own?
  std::int64_t position_rows() const { return max_positions + position_offset; }
  bool norms_before() const { return norm_place != NormPlace::after && norm_place != NormPlace::after_sum; }
  bool norms_after() const { return norm_place == NormPlace::after || norm_place == NormPlace::both; }
  // A module of multi-token prediction reads the embedding table and the head again: its rank holds both.
  bool shares_embedding() const { return tied_embeddings || mtp_layers > 0; }
};

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
  std::int64_t norms = 0;       // one layer of a transformer
  std::int64_t final_norm = 0;
  std::int64_t head = 0;  // 0 when tied
  std::int64_t mtp = 0;   // one module of multi-token prediction, less the table and the head that it shares
  std::int64_t dense_layers = 0;   // with an MLP
  std::int64_t sparse_layers = 0;  // with experts
  std::int64_t total = 0;
  std::int64_t active = 0;  // total less the routed experts that a token does not visit
};

ParameterCount count_parameters(const Model& model);

// InputError for a shape that no network can have (heads not a multiple of kv_heads, zero layers, ...);
// `file` is cited.
void require_valid(const Model& model, const std::string& file);

}  // namespace rehearse
