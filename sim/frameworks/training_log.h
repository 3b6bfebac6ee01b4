// How fast did a real run train, by its own log?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// Figures of one step in the log.
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

// Reads the log of a framework of log_words.h, recognized by its words. Other lines and colours are skipped.
// A step is one line or several. InputError when no line is of a known framework.
TrainingLog read_training_log(const std::string& text, const std::string& file);

// Medians over the logged steps after the first `warmup`. Only steps with the last step's global batch count.
// InputError when none is left.
LoggedStep median_step(const TrainingLog& log, std::size_t warmup, const std::string& file);

}  // namespace rehearse
