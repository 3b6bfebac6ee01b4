// Which vocabulary does a run of Megatron-LM have, where its flags name a tokenizer and no size?
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/names.h"
#include "frameworks/megatron_flags.h"

namespace rehearse {

namespace {

struct NamedVocabulary {
  const char* part;  // of the tokenizer's name, in lower case
  std::int64_t words;
};
// len() of the tokenizers of Hugging Face: the vocabularies of their tokenizer.json with the added tokens.
constexpr std::array kOfModels = {NamedVocabulary{"llama-3", 128256},
                                  NamedVocabulary{"llama3", 128256},
                                  NamedVocabulary{"llama_tokenizer.model", 32000},
                                  NamedVocabulary{"llama-2", 32000},
                                  NamedVocabulary{"llama2", 32000},
                                  NamedVocabulary{"mixtral-8x7b", 32000},
                                  NamedVocabulary{"mistral-7b-v0.1", 32000},
                                  NamedVocabulary{"mixtral-8x22b", 32000},
                                  NamedVocabulary{"mistral-nemo", 131072},
                                  NamedVocabulary{"minitron", 256000},
                                  NamedVocabulary{"nemotron-4", 256000},
                                  NamedVocabulary{"qwen2.5", 151665},
                                  NamedVocabulary{"qwen3-", 151669},
                                  NamedVocabulary{"deepseek-v3", 128815},
                                  NamedVocabulary{"kimi-k2", 163840}};

// Usual sizes by the type of the tokenizer. BERT's are bert-large-uncased and bert-large-cased.
constexpr std::array kUsual = {
    NamedVocabulary{"gpt2bpe", 50257},          NamedVocabulary{"bertwordpiececase", 28996},
    NamedVocabulary{"wordpiece", 30522},        NamedVocabulary{"llama2", 32000},
    NamedVocabulary{"llamatokenizer", 32000},   NamedVocabulary{"mixtraltokenizer", 32000},
    NamedVocabulary{"starcoder", 49152},        NamedVocabulary{"qwen2tokenizer", 151643},
    NamedVocabulary{"deepseekv3", 128815},      NamedVocabulary{"kimik2", 163840},
    NamedVocabulary{"gptsentencepiece", 32000}, NamedVocabulary{"sentencepiece", 32000},
    NamedVocabulary{"tiktokenizer", 131072}};
constexpr std::int64_t kUsualElse = 128256;

template <typename Table>
std::int64_t size_in(const Table& table, const std::string& name) {
  const auto found = std::ranges::find_if(
      table, [&](const NamedVocabulary& each) { return name.find(each.part) != std::string::npos; });
  return found == table.end() ? 0 : found->words;
}

// Types whose own files fix the size: GPT-2's unless another file is named, and TikTokenizer's default
// (megatron/training/tokenizer/tokenizer.py, CustomTikTokenizer).
bool brings_its_own(const MegatronFlags& flags, const std::string& type) {
  if (type == "tiktokenizer") return true;
  if (type != "gpt2bpetokenizer") return false;
  return !flags.has("--vocab-file") ||
         in_lower_case(join(flags.values("--vocab-file"), " ")).find("gpt2") != std::string::npos;
}

constexpr const char* kGpt2 = "GPT2BPETokenizer";  // Megatron-LM's default

bool is_told(const MegatronFlags& flags) {
  return flags.has("--tokenizer-type") || flags.has("--merge-file") || flags.has("--vocab-file");
}

std::int64_t words_of_tokenizer(const MegatronFlags& flags, std::vector<std::string>& notes) {
  const std::string named = flags.text_or("--tokenizer-type", kGpt2);
  const std::string type = in_lower_case(named);
  for (const char* flag : {"--tokenizer-model", "--tokenizer-name-or-path"}) {
    const std::string model = flags.has(flag) ? join(flags.values(flag), " ") : "";
    const std::int64_t words = size_in(kOfModels, in_lower_case(model));
    if (words == 0) continue;
    notes.push_back(fmt::format("{} {}: the vocabulary is taken to hold {} words", flag, model, words));
    return words;
  }
  const std::int64_t usual = size_in(kUsual, type), words = usual > 0 ? usual : kUsualElse;
  if (!is_told(flags))
    notes.push_back(
        "no vocabulary and no tokenizer is given: GPT-2's 50257 words are assumed; pass --vocab-size");
  else if (!brings_its_own(flags, type))
    notes.push_back(fmt::format(
        "--tokenizer-type {} does not state its vocabulary: {} words are assumed in embedding and "
        "output; pass --vocab-size",
        named, words));
  return words;
}

}  // namespace

bool assumes_vocabulary(const MegatronFlags& flags) {
  if (flags.has("--padded-vocab-size") || flags.has("--vocab-size")) return false;
  for (const char* flag : {"--tokenizer-model", "--tokenizer-name-or-path"})
    if (flags.has(flag) && size_in(kOfModels, in_lower_case(join(flags.values(flag), " "))) > 0) return false;
  return !is_told(flags) || !brings_its_own(flags, in_lower_case(flags.text_or("--tokenizer-type", kGpt2)));
}

std::int64_t megatron_vocabulary(const MegatronFlags& flags, std::vector<std::string>& notes) {
  if (flags.has("--padded-vocab-size")) return flags.integer("--padded-vocab-size");
  std::int64_t words = flags.integer_or("--vocab-size", 0);
  if (words == 0) words = words_of_tokenizer(flags, notes);
  // Pai-Megatron-Patch adds words in place of rounding (megatron_patch/tokenizer/__init__.py).
  if (flags.has("--extra-vocab-size")) return words + flags.integer("--extra-vocab-size");
  const std::int64_t unit =
      std::max<std::int64_t>(1, flags.integer_or("--make-vocab-size-divisible-by", 128)) *
      std::max<std::int64_t>(1, flags.integer_or("--tensor-model-parallel-size", 1));
  const std::string type = flags.text_or("--tokenizer-type", "");
  if (type == "NullTokenizer" && words % unit == 0)  // core/tokenizers/text/libraries/null_tokenizer.py
    notes.push_back(
        "--tokenizer-type NullTokenizer: releases up to core_v0.16 add a word to --vocab-size, which is not "
        "counted");
  return (words + unit - 1) / unit * unit;
}

}  // namespace rehearse
