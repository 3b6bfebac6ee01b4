// Samples of other programs' files (data/README.md), and the errors of refused ones.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include "base/error.h"
#include "frameworks/imported.h"
#include "frameworks/kinds.h"

namespace rehearse {

inline std::string path(const std::string& name) {
  return std::string(SOURCE_DIR) + "/tests/frameworks/data/" + name;
}

inline std::string text_of(const std::string& name) {
  std::ifstream in(path(name));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

template <typename Import>
std::string refusal(Import&& import) {
  try {
    import();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

inline Imported read_launch(const std::string& name, const std::string& text,
                            const ImportRequest& request = {}) {
  const LaunchFile file{name, text};
  return detect_kind(file).kind->read(file, request, [](const std::string&) { return std::int64_t{32}; });
}

inline std::string fate_of(const Imported& found, const std::string& name) {
  for (const ImportedOption& option : found.options)
    if (option.name == name) return to_string(option.fate);
  return "absent";
}

inline Imported megatron(const std::string& text) {
  return import_megatron(text, "train.sh");
}

inline const std::string kShape =
    "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --max-position-embeddings 512 "
    "--tokenizer-type GPT2BPETokenizer ";

// Flags that, in addition to the shape, make it a Llama.
inline const std::string kOfLlama =
    "--swiglu --normalization RMSNorm --position-embedding-type rope --hidden-dropout 0 --attention-dropout "
    "0 ";

}  // namespace rehearse
