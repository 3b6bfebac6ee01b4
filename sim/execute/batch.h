// What does the network read? A text, or tokens made from a seed, which can be learned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "execute/training.h"

namespace rehearse {

struct Batch {
  // Row = place * sequences + sequence. A label is the token after the one it is of.
  std::vector<std::int64_t> tokens, labels;
};

// Place of a microbatch's first sequence in the global batch, which holds the same sequences in the same
// places however it is divided.
std::int64_t first_sequence(const Plan& plan, int replica, int microbatch);

// Microbatch `microbatch` of replica `replica` in step `step`. A sequence of a text begins anywhere in it,
// drawn from the seed; a made token follows from the one before it but for a random choice of four.
// Of it the places of context-parallel rank `context_rank`, each with the token `ahead` places further on: 0,
// or up to as many as the model has modules of multi-token prediction.
Batch make_batch(const Training& training, std::int64_t step, int replica, int context_rank, int microbatch,
                 std::int64_t ahead = 0);

// Tokens of a sequence: those that are read, and the last label.
std::int64_t tokens_of_sequence(const Model& model, const Plan& plan);

// Positions in the sequence that a context-parallel rank holds: a chunk from either end, so that causal work
// is equal (Megatron-LM, get_batch_on_this_cp_rank).
std::vector<std::int64_t> places_of_rank(const Plan& plan, int context_rank);

// The bytes of a file, each of which is a token. InputError when it cannot be read, holds a byte beyond the
// vocabulary, or is too short for one sequence of so many tokens.
std::string read_text(const std::string& path, std::int64_t vocab, std::int64_t tokens);

}  // namespace rehearse
