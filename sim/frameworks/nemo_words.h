// Which configuration do the words of a command line of NeMo make, such as a test of Megatron-LM lists?
#pragma once

#include "frameworks/yaml_text.h"

namespace rehearse {

enum class NemoWords : std::uint8_t { none, nemo_1, nemo_2 };

// MODEL_ARGS: {trainer.devices: 8, model.num_layers: 12}. The strategy of the trainer is NeMo 2's.
NemoWords nemo_words_of(const Json& yaml);

// The words as a nested configuration: {"trainer": {"devices": 8}, "model": {"num_layers": 12}}.
YamlText nested_nemo_words(const YamlText& yaml);

}  // namespace rehearse
