// Which settings do slime and miles have, where Megatron-LM has others? Both train the actor of reinforcement
// learning with Megatron-LM.
#pragma once

#include <string>
#include <vector>

#include "frameworks/megatron_flags.h"

namespace rehearse {

// Whether the flags are those of slime or miles.
bool is_slime(const ScriptFlags& found);

// Adds the values that both set themselves. Unknown options of generation and evaluation become free ones.
void add_slime_defaults(ScriptFlags& found);

// Sequence length and batch of one update of the actor; the notes name what is assumed.
void add_slime(const MegatronFlags& flags, const Json& scenario, Json& plan, std::vector<std::string>& notes);

}  // namespace rehearse
