// Which words of which framework's log stand beside which number?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rehearse {

enum class LoggedField : std::uint8_t {
  step,
  step_time_s,
  steps_per_s,
  samples_per_s,
  tokens_per_s,
  tokens_per_s_per_gpu,
  tflops_per_gpu,
  global_batch,
  gpus,
  memory_bytes,
  reserved_bytes
};

struct LogWords {
  const char* framework;
  const char* words;
  LoggedField field;
  double scale = 1;         // to SI units
  const char* beside = "";  // words that the line must hold too
  bool before = false;      // the number stands before the words
};

const std::vector<LogWords>& log_words();

// "Megatron-LM, DeepSpeed, ...": each framework once.
std::string logging_frameworks();

}  // namespace rehearse
