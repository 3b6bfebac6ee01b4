// How fast did a real run train, by its own log?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// What a line of the log says of a step.
struct LoggedStep {
  std::int64_t step = 0;
  std::optional<double> step_time_s, samples_per_s, tokens_per_s_per_gpu, tflops_per_gpu;
};

struct TrainingLog {
  std::string framework;  // "Megatron-LM", "DeepSpeed" or "torchtitan"
  std::vector<LoggedStep> steps;
  std::optional<double> peak_memory_bytes;   // the most of any line
  bool memory_is_reserved = false;           // by the allocator, which keeps more than it hands out
  std::optional<std::int64_t> global_batch;  // sequences, where the log says it
};

// Megatron-LM ("elapsed time per iteration (ms): ..."), DeepSpeed ("CurrSamplesPerSec=...", or its pipeline
// engine's "iter time (s): ...") or torchtitan ("tps: ..."), told apart by their words; other lines and
// colours are passed over. InputError when no line is of any of them.
TrainingLog read_training_log(const std::string& text, const std::string& file);

// Medians over the logged steps but the first `warmup`. InputError
// when none is left.
LoggedStep median_step(const TrainingLog& log, std::size_t warmup, const std::string& file);

}  // namespace rehearse
