#include "validate/run_classes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace rehearse {

namespace {

bool has_digit(const std::string& word) {
  return std::ranges::any_of(word, [](unsigned char c) { return std::isdigit(c) != 0; });
}

const char* word(Known known) {
  switch (known) {
    case Known::script:
      return "script";
    case Known::table:
      return "table";
    case Known::inferred:
      return "inferred";
    case Known::not_stated:
      return "not stated";
  }
  return "";
}

}  // namespace

std::string gpu_generation(const std::string& name) {
  std::string word;
  for (const char c : name + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
      continue;
    }
    if (has_digit(word)) return word;
    word.clear();
  }
  return name;
}

std::string class_of(const RunPrediction& prediction) {
  if (prediction.has_experts) return "experts (MoE)";
  if (prediction.under_fsdp) return "FSDP";
  if (prediction.launch_bound_share >= kLaunchBound) return "launch-bound";
  return "dense on " + gpu_generation(prediction.gpu);
}

std::map<std::string, ClassErrors> errors_by_class(const std::vector<RunPrediction>& predictions) {
  std::map<std::string, ClassErrors> classes;
  for (const RunPrediction& each : predictions) {
    if (!each.seconds || !each.run.measured_s) continue;
    ClassErrors& of = classes[class_of(each)];
    of.errors.push_back(time_error(each));
    ++of.known[each.run.known];
  }
  return classes;
}

ClassErrors memory_errors(const std::vector<RunPrediction>& predictions) {
  ClassErrors memory;
  for (const RunPrediction& each : predictions) {
    if (!each.memory_bytes || !each.run.memory_bytes) continue;
    memory.errors.push_back(relative_error(*each.memory_bytes, *each.run.memory_bytes));
    ++memory.known[each.run.known];
  }
  return memory;
}

std::string to_string(const std::map<Known, int>& known) {
  std::string text;
  for (const auto& [each, count] : known)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", word(each), count);
  return text;
}

}  // namespace rehearse
