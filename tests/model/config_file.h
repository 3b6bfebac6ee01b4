// A configuration written to a file of its own, to be read back as a user's would be.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/json_reader.h"
#include "model/read.h"
#include "scratch.h"

namespace rehearse {

inline std::string write_config(const std::string& text) {
  return scratch().write("model.json", text);
}

inline Model read_config(const Json& config) {
  return read_model(write_config(config.dump()));
}

// The error of read_model for a bad configuration, or "" when it is accepted.
inline std::string complaint(const std::string& text) {
  try {
    read_model(write_config(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

inline Json llama_config() {
  return {{"model_type", "llama"},    {"hidden_size", 4096},
          {"num_hidden_layers", 32},  {"num_attention_heads", 32},
          {"num_key_value_heads", 8}, {"intermediate_size", 14336},
          {"vocab_size", 128256},     {"max_position_embeddings", 8192}};
}

inline Json mixtral_config() {
  Json config = llama_config();
  config["model_type"] = "mixtral";
  config["num_local_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  return config;
}

inline Json qwen3_moe_config() {
  Json config = llama_config();
  config["model_type"] = "qwen3_moe";
  config["num_experts"] = 64;
  config["num_experts_per_tok"] = 4;
  config["moe_intermediate_size"] = 768;
  return config;
}

}  // namespace rehearse
