// How fast did a real run train, by its own log?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// What the log says of a step.
struct LoggedStep {
  std::int64_t step = 0;
  std::optional<double> step_time_s, samples_per_s, tokens_per_s, tokens_per_s_per_gpu, tflops_per_gpu;
  std::optional<std::int64_t> global_batch;  // sequences
};

struct TrainingLog {
  std::string framework;  // as log_words.h names it
  std::vector<LoggedStep> steps;
  std::optional<double> peak_memory_bytes;   // the most of any line
  bool memory_is_reserved = false;           // by the allocator, which keeps more than it hands out
  std::optional<std::int64_t> global_batch;  // sequences of the last step, where the log says it
  std::optional<std::int64_t> gpus;
};

// A log of a framework of log_words.h, told by its words; other lines and colours are passed over. A step is
// one line or several. InputError when no line is of any of them.
TrainingLog read_training_log(const std::string& text, const std::string& file);

// Medians over the logged steps but the first `warmup`, and of those over the ones of the last step's global
// batch. InputError when none is left.
LoggedStep median_step(const TrainingLog& log, std::size_t warmup, const std::string& file);

}  // namespace rehearse
