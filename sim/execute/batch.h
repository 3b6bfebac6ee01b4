// Which tokens does the network read? A text, or tokens made from a seed, in an order that can be learned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/training.h"

namespace rehearse {

struct Batch {
  // Row = place * sequences + sequence. A label is the token after its own.
  std::vector<std::int64_t> tokens, labels;
};

// Place of a microbatch's first sequence in the global batch. The global batch holds the same sequences in
// the same places for every split.
std::int64_t first_sequence(const Plan& plan, int replica, int microbatch);

// Microbatch `microbatch` of replica `replica` in step `step`. A sequence of a text begins anywhere in it,
// drawn from the seed. A made token follows from the one before it, except for a random choice of four. The
// result has the places of context-parallel rank `context_rank`, each with the token `ahead` places later: 0,
// or up to the model's number of MTP layers.
Batch make_batch(const Training& training, std::int64_t step, int replica, int context_rank, int microbatch,
                 std::int64_t ahead = 0);

// Tokens of a sequence, including the last label.
std::int64_t tokens_of_sequence(const Model& model, const Plan& plan);

// Positions in the sequence that a context-parallel rank holds: a chunk from either end, so that causal
// attention has equal work (Megatron-LM, get_batch_on_this_cp_rank).
std::vector<std::int64_t> places_of_rank(const Plan& plan, int context_rank);

// The bytes of a file, one token each. InputError when it cannot be read, holds a byte beyond the vocabulary,
// or is shorter than one sequence of `tokens`.
std::string read_text(const std::string& path, std::int64_t vocab, std::int64_t tokens);

}  // namespace rehearse
