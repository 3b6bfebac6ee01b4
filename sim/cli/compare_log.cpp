#include "cli/compare_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/say.h"
#include "base/text_file.h"
#include "frameworks/training_log.h"

namespace rehearse {

namespace {

std::size_t warm_up(int asked, std::size_t steps) {
  if (asked >= 0) return static_cast<std::size_t>(asked);
  return steps < 2 ? 0 : std::max<std::size_t>(1, steps / 10);
}

// Samples of a step, tokens of a sample, and GPUs, from the report's plan.
struct Size {
  double samples, tokens, gpus;
};

Size size_of(const JsonReader& report) {
  constexpr std::int64_t kMax = std::int64_t{1} << 40;
  const JsonReader plan = report.object("plan");
  return {static_cast<double>(plan.integer("global_batch", 1, kMax)),
          static_cast<double>(plan.integer("seq", 1, kMax)),
          static_cast<double>(report.object("cluster").integer("gpus", 1, kMax))};
}

// The global batch that a log's rate and step time imply; the report's, where it matches within rounding.
double batch_of(const TrainingLog& log, const LoggedStep& step, double of_report) {
  constexpr double kRounding = 0.02;
  if (log.global_batch) return static_cast<double>(*log.global_batch);
  if (!step.samples_per_s || !step.step_time_s) return of_report;
  const double told = *step.samples_per_s * *step.step_time_s;
  return std::abs(told / of_report - 1) <= kRounding ? of_report : std::max(1.0, std::round(told));
}

double step_time(const LoggedStep& step, const Size& size) {
  if (step.step_time_s) return *step.step_time_s;
  if (step.samples_per_s) return size.samples / *step.samples_per_s;
  return size.samples * size.tokens / (step.tokens_per_s_per_gpu.value_or(0) * size.gpus);
}

// The quantities; rates that the log does not print are derived from those that it prints.
std::vector<Quantity> quantities_of(const TrainingLog& log, const LoggedStep& step, const Size& size) {
  const double seconds = step_time(step, size);
  const double by_gpus = step.tokens_per_s.value_or(step.tokens_per_s_per_gpu.value_or(0) * size.gpus);
  const double samples = step.samples_per_s ? *step.samples_per_s
                         : by_gpus > 0      ? by_gpus / size.tokens
                                            : size.samples / seconds;
  const double tokens = by_gpus > 0 ? by_gpus : samples * size.tokens;
  std::vector<Quantity> quantities = {
      {"step_time_s", Measure::seconds, seconds},
      {"tokens_per_s", Measure::count, tokens},
      {"tokens_per_s_per_gpu", Measure::count, step.tokens_per_s_per_gpu.value_or(tokens / size.gpus)},
      {"samples_per_s", Measure::count, samples}};
  if (step.tflops_per_gpu)
    quantities.push_back({"model_tflops_per_gpu", Measure::count, *step.tflops_per_gpu});
  if (log.peak_memory_bytes)
    quantities.push_back({"memory.peak_bytes", Measure::bytes, *log.peak_memory_bytes});
  return quantities;
}

// The number of GPUs that matches the log's rates of samples and of tokens a GPU, at the report's sequence
// length. 0 where the log lacks one of these rates, or they match the log's own GPUs.
double gpus_of_rates(const LoggedStep& step, const Size& logged) {
  constexpr double kRounding = 0.02;
  if (!step.samples_per_s || !step.tokens_per_s_per_gpu) return 0;
  const double gpus = *step.samples_per_s * logged.tokens / *step.tokens_per_s_per_gpu;
  return std::abs(gpus / logged.gpus - 1) > kRounding ? gpus : 0;
}

std::vector<std::string> note_differences(const TrainingLog& log, const LoggedStep& step, const Size& logged,
                                          const Size& reported, const std::string& file) {
  std::vector<std::string> of_other_work;
  if (const double gpus = gpus_of_rates(step, logged); gpus > 0) {
    of_other_work = {"step_time_s", "tokens_per_s", "samples_per_s"};
    say(stderr,
        "note: the rates of {} match {:.4g} GPUs at {} tokens per sample, or samples of another length: step "
        "time, tokens_per_s and samples_per_s are not compared and not gated; tokens_per_s_per_gpu is\n",
        file, gpus, logged.tokens);
  }
  if (log.memory_is_reserved)
    say(stderr, "note: {} prints reserved memory, the report prints allocated memory\n", file);
  if (logged.samples != reported.samples) {
    of_other_work.push_back("step_time_s");
    say(stderr,
        "note: {} has global batch {}, the report {}: the step time is not compared and not gated; "
        "tokens_per_s_per_gpu is\n",
        file, logged.samples, reported.samples);
  }
  if (logged.gpus != reported.gpus) {
    of_other_work.insert(of_other_work.end(), {"step_time_s", "tokens_per_s", "samples_per_s"});
    say(stderr,
        "note: {} ran on {} GPUs, the report is for {}: step time, tokens_per_s and samples_per_s are not "
        "compared and not gated; tokens_per_s_per_gpu is\n",
        file, logged.gpus, reported.gpus);
  }
  const auto of_other_batch = [&](const LoggedStep& each) {
    return each.global_batch && each.global_batch != log.global_batch;
  };
  if (std::ranges::any_of(log.steps, of_other_batch))
    say(stderr, "note: the global batch of {} grows: only steps of the last size, {}, are used\n", file,
        logged.samples);
  return of_other_work;
}

}  // namespace

LogSide read_log_side(const std::string& file, int warmup, const Side& report) {
  const TrainingLog log = read_training_log(read_text_file(file), file);
  const LoggedStep step = median_step(log, warm_up(warmup, log.steps.size()), file);
  const Size reported = size_of(JsonReader(report.report, report.name));
  const Size logged{batch_of(log, step, reported.samples), reported.tokens,
                    log.gpus ? static_cast<double>(*log.gpus) : reported.gpus};
  LogSide side{{file, report.report, quantities_of(log, step, logged)},
               note_differences(log, step, logged, reported, file)};
  Json& of_log = side.run.report;
  of_log["source"] = "log";
  of_log["engine"] = log.framework;
  of_log["plan"]["global_batch"] = static_cast<std::int64_t>(logged.samples);
  of_log["cluster"]["gpus"] = static_cast<std::int64_t>(logged.gpus);
  return side;
}

}  // namespace rehearse
