#include "cli/compare_log.h"

#include <fmt/core.h>

#include "base/text_file.h"
#include "cli/say.h"
#include "frameworks/training_log.h"

namespace rehearse {

namespace {

std::size_t warm_up(int asked, std::size_t steps) {
  if (asked >= 0) return static_cast<std::size_t>(asked);
  return steps < 2 ? 0 : std::max<std::size_t>(1, steps / 10);
}

// Samples of a step, tokens of a sample, GPUs: as the report's plan has them.
struct Size {
  double samples, tokens, gpus;
};

Size size_of(const JsonReader& report) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const JsonReader plan = report.object("plan");
  return {static_cast<double>(plan.integer("global_batch", 1, kMost)),
          static_cast<double>(plan.integer("seq", 1, kMost)),
          static_cast<double>(report.object("cluster").integer("gpus", 1, kMost))};
}

double step_time(const LoggedStep& step, const Size& size) {
  if (step.step_time_s) return *step.step_time_s;
  if (step.samples_per_s) return size.samples / *step.samples_per_s;
  return size.samples * size.tokens / (step.tokens_per_s_per_gpu.value_or(0) * size.gpus);
}

void note_differences(const TrainingLog& log, const Size& size, const std::string& file) {
  if (log.global_batch && static_cast<double>(*log.global_batch) != size.samples)
    say(stderr, "note: {} has global batch {}, the report {}\n", file, *log.global_batch, size.samples);
  if (log.memory_is_reserved)
    say(stderr, "note: {} prints memory that the allocator reserved, the report what it hands out\n", file);
}

}  // namespace

ComparedRun read_log_side(const std::string& file, int warmup, const Side& report) {
  const TrainingLog log = read_training_log(read_text_file(file), file);
  const LoggedStep step = median_step(log, warm_up(warmup, log.steps.size()), file);
  const Size size = size_of(JsonReader(report.report, report.name));
  note_differences(log, size, file);
  ComparedRun run{file, report.report, {}};
  run.report["source"] = "log";
  run.report["engine"] = log.framework;
  const double seconds = step_time(step, size);
  run.quantities = {
      {"step_time_s", Measure::seconds, seconds},
      {"tokens_per_s", Measure::count, size.samples * size.tokens / seconds},
      {"tokens_per_s_per_gpu", Measure::count, size.samples * size.tokens / seconds / size.gpus},
      {"samples_per_s", Measure::count, size.samples / seconds}};
  if (step.tflops_per_gpu)
    run.quantities.push_back({"model_tflops_per_gpu", Measure::count, *step.tflops_per_gpu});
  if (log.peak_memory_bytes)
    run.quantities.push_back({"memory.peak_bytes", Measure::bytes, *log.peak_memory_bytes});
  return run;
}

}  // namespace rehearse
