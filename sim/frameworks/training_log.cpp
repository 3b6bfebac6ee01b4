#include "frameworks/training_log.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/bounds.h"
#include "base/error.h"
#include "frameworks/log_words.h"

namespace rehearse {

namespace {

constexpr Bounds kFigure{Dimension::one, 1e-9, 1e15};  // a step, a time, a rate or an amount of memory

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

// "11.4K": nanotron shortens large numbers.
double unit_of(const std::string& line, std::size_t at) {
  constexpr std::string_view kUnits = "KMGTP";
  const std::size_t unit = at < line.size() ? kUnits.find(line[at]) : std::string_view::npos;
  const bool ends = at + 1 >= line.size() || std::isalnum(static_cast<unsigned char>(line[at + 1])) == 0;
  return unit == std::string_view::npos || !ends ? 1 : std::pow(1000, static_cast<double>(unit + 1));
}

bool is_of_number(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0 ||
         std::string_view(".,eE+-").find(letter) != std::string_view::npos;
}

// The number at `at`; thousands may be grouped by commas.
std::optional<double> number_at(const std::string& line, std::size_t at) {
  std::string digits;
  for (; at < line.size() && is_of_number(line[at]); ++at)
    if (line[at] != ',') digits += line[at];
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end) * unit_of(line, at);
  if (digits.empty() || end == digits.c_str() || !kFigure.hold(value)) return std::nullopt;
  return value;
}

// The number beside the words, behind spaces, quotes, colons and equals signs.
std::optional<double> number_beside(const std::string& line, const LogWords& words) {
  const std::size_t at = line.find(words.words);
  if (at == std::string::npos || line.find(words.beside) == std::string::npos) return std::nullopt;
  if (words.before) {
    std::size_t begin = at;
    while (begin > 0 && is_of_number(line[begin - 1])) --begin;
    return begin == at ? std::nullopt : number_at(line, begin);
  }
  const std::size_t begin = line.find_first_not_of(" \t'\":=", at + std::string_view(words.words).size());
  return begin == std::string::npos ? std::nullopt : number_at(line, begin);
}

// Steps of a log in the words of one framework. A step ends where one of its rates is printed again.
class FrameworkLog {
 public:
  void take(LoggedField field, double value) {
    switch (field) {
      case LoggedField::step:
        next_.step = static_cast<std::int64_t>(value);
        return;
      case LoggedField::step_time_s:
        return rate(&LoggedStep::step_time_s, value);
      case LoggedField::steps_per_s:
        return rate(&LoggedStep::step_time_s, 1 / value);
      case LoggedField::samples_per_s:
        return rate(&LoggedStep::samples_per_s, value);
      case LoggedField::tokens_per_s:
        return rate(&LoggedStep::tokens_per_s, value);
      case LoggedField::tokens_per_s_per_gpu:
        return rate(&LoggedStep::tokens_per_s_per_gpu, value);
      case LoggedField::tflops_per_gpu:
        return rate(&LoggedStep::tflops_per_gpu, value);
      case LoggedField::global_batch:
        step_.global_batch = log_.global_batch = static_cast<std::int64_t>(value);
        return;
      case LoggedField::gpus:
        log_.gpus = static_cast<std::int64_t>(value);
        return;
      case LoggedField::reserved_bytes:
        log_.memory_is_reserved = true;
        [[fallthrough]];
      case LoggedField::memory_bytes:
        log_.peak_memory_bytes = std::max(log_.peak_memory_bytes.value_or(0), value);
    }
  }

  TrainingLog finish(const std::string& framework) && {
    end_step();
    if (!log_.gpus && !log_.steps.empty()) log_.gpus = gpus_of(log_.steps.back());
    log_.framework = framework;
    return std::move(log_);
  }

 private:
  void rate(std::optional<double> LoggedStep::*field, double value) {
    if (step_.*field) end_step();
    step_.*field = value;
    step_.step = std::max(step_.step, next_.step);
  }

  // The number of GPUs follows from the rates of all GPUs and of one, where their digits allow one number
  // alone.
  static std::optional<std::int64_t> gpus_of(const LoggedStep& step) {
    constexpr double kRounding = 0.02;
    if (!step.tokens_per_s || !step.tokens_per_s_per_gpu) return std::nullopt;
    const double gpus = *step.tokens_per_s / *step.tokens_per_s_per_gpu;
    const double whole = std::round(gpus);
    if (whole < 1 || std::abs(gpus / whole - 1) > kRounding) return std::nullopt;
    return static_cast<std::int64_t>(whole);
  }

  void end_step() {
    if (!step_.samples_per_s && step_.global_batch && step_.step_time_s)
      step_.samples_per_s = static_cast<double>(*step_.global_batch) / *step_.step_time_s;
    if (step_.step_time_s || step_.samples_per_s || step_.tokens_per_s_per_gpu) log_.steps.push_back(step_);
    step_ = {};
  }

  std::string file_;
  TrainingLog log_;
  LoggedStep step_, next_;
};

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

TrainingLog read_training_log(const std::string& text, const std::string& file) {
  std::map<std::string, FrameworkLog> logs;
  std::vector<std::string> order;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());  // progress bars return
    const std::string line = without_colours(text.substr(begin, end - begin));
    begin = end + 1;
    for (const LogWords& words : log_words()) {
      const std::optional<double> value = number_beside(line, words);
      if (!value) continue;
      const auto [log, is_new] = logs.try_emplace(words.framework);
      if (is_new) order.push_back(log->first);
      log->second.take(words.field, *value * words.scale);
    }
  }
  for (const std::string& framework : order) {
    TrainingLog log = std::move(logs.at(framework)).finish(framework);
    if (!log.steps.empty()) return log;
  }
  throw InputError({file, "", "no line is a training step of a supported framework", "",
                    "the log of " + logging_frameworks()});
}

LoggedStep median_step(const TrainingLog& log, std::size_t warmup, const std::string& file) {
  if (warmup >= log.steps.size())
    throw InputError({file, "", "the log has no step after the warm-up",
                      fmt::format("{} logged, warm-up {}", log.steps.size(), warmup),
                      fmt::format("--warmup {}", log.steps.size() - 1)});
  const auto of = [&](std::optional<double> LoggedStep::*field) {
    std::vector<double> values;
    for (std::size_t i = warmup; i < log.steps.size(); ++i) {
      const LoggedStep& step = log.steps[i];
      if (step.*field && step.global_batch == log.steps.back().global_batch) values.push_back(*(step.*field));
    }
    return median(std::move(values));
  };
  return {log.steps.back().step,
          of(&LoggedStep::step_time_s),
          of(&LoggedStep::samples_per_s),
          of(&LoggedStep::tokens_per_s),
          of(&LoggedStep::tokens_per_s_per_gpu),
          of(&LoggedStep::tflops_per_gpu),
          log.global_batch};
}

}  // namespace rehearse
