#include "frameworks/training_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace rehearse {

namespace {

constexpr double kGib = 1024.0 * 1024 * 1024, kMib = 1024.0 * 1024;
constexpr double kMost = 1e15;  // no step, time or rate of a log is larger

// ESC [ ... letter
std::string without_colours(const std::string& line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    while (i < line.size() && std::isalpha(static_cast<unsigned char>(line[i])) == 0) ++i;
  }
  return plain;
}

// The number that follows the words; thousands may be grouped by commas.
std::optional<double> number_after(const std::string& line, const std::string& words) {
  const std::size_t at = line.find(words);
  if (at == std::string::npos) return std::nullopt;
  std::string digits;
  std::size_t i = line.find_first_not_of(' ', at + words.size());
  for (; i < line.size() && (std::isdigit(static_cast<unsigned char>(line[i])) != 0 ||
                             std::string_view(".,eE+-").find(line[i]) != std::string_view::npos);
       ++i)
    if (line[i] != ',') digits += line[i];
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (digits.empty() || end == digits.c_str() || !(value > 0 && value <= kMost)) return std::nullopt;
  return value;
}

class LogReader {
 public:
  TrainingLog read(const std::string& text) {
    std::istringstream lines(text);
    for (std::string raw; std::getline(lines, raw);) {
      const std::string line = without_colours(raw);
      megatron(line);
      deepspeed(line);
      torchtitan(line);
    }
    return std::move(log_);
  }

 private:
  void add(const char* framework, LoggedStep step) {
    if (log_.framework.empty()) log_.framework = framework;
    if (log_.framework == framework) log_.steps.push_back(step);
  }

  void memory(std::optional<double> bytes) {
    if (bytes) log_.peak_memory_bytes = std::max(log_.peak_memory_bytes.value_or(0), *bytes);
  }

  void megatron(const std::string& line) {
    if (const auto mebibytes = number_after(line, "| max allocated:")) memory(*mebibytes * kMib);
    const std::optional<double> ms = number_after(line, "elapsed time per iteration (ms):");
    if (!ms) return;
    LoggedStep step{step_of(line, "iteration"), *ms * 1e-3, {}, {}, {}};
    step.tflops_per_gpu = number_after(line, "throughput per GPU (TFLOP/s/GPU):");
    if (const auto batch = number_after(line, "global batch size:")) {
      log_.global_batch = static_cast<std::int64_t>(*batch);
      step.samples_per_s = *batch / *step.step_time_s;
    }
    add("Megatron-LM", step);
  }

  void deepspeed(const std::string& line) {
    if (const auto gigabytes = number_after(line, "MaxMemAllocated=")) memory(*gigabytes * kGib);
    LoggedStep step{step_of(line, "global_step="), {}, {}, {}, {}};
    step.samples_per_s = number_after(line, "CurrSamplesPerSec=");
    if (step.samples_per_s) return add("DeepSpeed", step);
    step.step_time_s = number_after(line, "iter time (s):");
    step.step = step_of(line, "steps:");
    step.samples_per_s = number_after(line, "samples/sec:");
    if (step.step_time_s) add("DeepSpeed", step);
  }

  void torchtitan(const std::string& line) {
    const std::optional<double> rate = number_after(line, "tps:");
    if (!rate) return;
    LoggedStep step{step_of(line, "step:"), {}, {}, {}, {}};
    step.tokens_per_s_per_gpu = rate;
    step.tflops_per_gpu = number_after(line, "tflops:");
    if (const auto gibibytes = number_after(line, "memory:")) {
      memory(*gibibytes * kGib);
      log_.memory_is_reserved = true;
    }
    add("torchtitan", step);
  }

  static std::int64_t step_of(const std::string& line, const char* words) {
    return static_cast<std::int64_t>(number_after(line, words).value_or(0));
  }

  TrainingLog log_;
};

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

TrainingLog read_training_log(const std::string& text, const std::string& file) {
  TrainingLog log = LogReader().read(text);
  if (log.steps.empty())
    throw InputError({file, "", "no line is a step of Megatron-LM, DeepSpeed or torchtitan", "",
                      "\"elapsed time per iteration (ms): \", \"CurrSamplesPerSec=\" or \"tps: \""});
  return log;
}

LoggedStep median_step(const TrainingLog& log, std::size_t warmup, const std::string& file) {
  if (warmup >= log.steps.size())
    throw InputError({file, "", "no logged step is left after the warm-up",
                      fmt::format("{} logged, warm-up {}", log.steps.size(), warmup),
                      fmt::format("--warmup {}", log.steps.size() - 1)});
  const auto of = [&](std::optional<double> LoggedStep::*field) {
    std::vector<double> values;
    for (std::size_t i = warmup; i < log.steps.size(); ++i)
      if (log.steps[i].*field) values.push_back(*(log.steps[i].*field));
    return median(std::move(values));
  };
  return {log.steps.back().step, of(&LoggedStep::step_time_s), of(&LoggedStep::samples_per_s),
          of(&LoggedStep::tokens_per_s_per_gpu), of(&LoggedStep::tflops_per_gpu)};
}

}  // namespace rehearse
