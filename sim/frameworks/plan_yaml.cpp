#include "frameworks/plan_yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>

#include "base/bounds.h"
#include "frameworks/script_flags.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxOfTrainer = std::int64_t{1} << 32;

}  // namespace

std::set<std::string> keys_of(const char* words) {
  std::set<std::string> keys;
  std::istringstream from{std::string(words)};
  for (std::string word; from >> word;) keys.insert(std::move(word));
  return keys;
}

std::string in_upper_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return text;
}

PlanYaml::PlanYaml(const YamlText& yaml, const std::string& file, const ImportRequest& request)
    : yaml_(yaml), file_(file), request_(request) {
  imported.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + file}};
}

const Json* PlanYaml::find(const std::string& path) {
  read_.insert(path);
  const Json* at = at_path(yaml_.json, path);
  return at == nullptr || at->is_null() ? nullptr : at;
}

std::int64_t PlanYaml::integer(const std::string& path, std::int64_t fallback, const std::string& pointer) {
  const Json* value = find(path);
  if (value == nullptr || *value == "auto") return fallback;
  const bool is_whole =
      value->is_number_integer() ||
      (value->is_number_float() && value->get<double>() == std::floor(value->get<double>()) &&
       std::abs(value->get<double>()) < static_cast<double>(kMaxOfTrainer));
  const std::int64_t number = is_whole ? value->get<std::int64_t>() : -1;
  if (is_whole && number >= 0 && number <= kMaxOfTrainer) return number;
  if (request_.over.contains(pointer)) return fallback;
  const bool is_open = value->is_string() && value->get<std::string>().find('$') != std::string::npos;
  violations.push_back({file_, place(path), fmt::format("must be an integer from 0 to {}", kMaxOfTrainer),
                        "found " + value->dump().substr(0, 200),
                        is_open ? words_that_decide(value->get<std::string>(), file_) : ""});
  return fallback;
}

double PlanYaml::number(const std::string& path, double fallback) {
  const Json* value = find(path);
  if (value == nullptr) return fallback;
  if (value->is_number() && value->get<double>() >= 0 && value->get<double>() <= kMaxClipGrad)
    return value->get<double>();
  violations.push_back({file_, place(path), fmt::format("must be a number from 0 to {:g}", kMaxClipGrad),
                        "found " + value->dump().substr(0, 200), ""});
  return fallback;
}

bool PlanYaml::on(const std::string& path, bool fallback) {
  const Json* value = find(path);
  return value == nullptr || *value == "auto" ? fallback : *value == true || *value == "true" || *value == 1;
}

std::string PlanYaml::text(const std::string& path) {
  const Json* value = find(path);
  return value == nullptr ? "" : value->is_string() ? value->get<std::string>() : value->dump();
}

std::string PlanYaml::place(const std::string& path) const {
  return line(path) > 0 ? fmt::format("line {}: {}", line(path), path) : path;
}

bool PlanYaml::is_over(const std::string& pointer) const {
  return request_.over.contains(pointer);
}

void PlanYaml::note(const std::string& path, const std::string& text) {
  imported.notes.push_back(fmt::format("{} {}", place(path), text));
}

void PlanYaml::ignore_unless(const std::string& path, const Json& counted, const std::string& effect) {
  const Json* value = find(path);
  if (value != nullptr && *value != counted)
    note(path, fmt::format("{} is ignored: {}", value->dump().substr(0, 200), effect));
}

void PlanYaml::ignore_unless(std::span<const CountedKey> keys, const std::string& before) {
  for (const CountedKey& each : keys)
    ignore_unless(before + each.path, Json::parse(each.counted), each.effect);
}

void PlanYaml::write_gpus(std::int64_t gpus) {
  if (request_.gpus > 0 || gpus > 0) imported.scenario["gpus"] = request_.gpus > 0 ? request_.gpus : gpus;
}

Imported PlanYaml::finish(const std::set<std::string>& free) {
  if (!violations.empty()) throw InputError(std::move(violations));
  list(yaml_.json, "", free, nullptr);
  settle_fates(imported);
  return std::move(imported);
}

int PlanYaml::line(const std::string& path) const {
  std::string pointer = "/" + path;
  std::ranges::replace(pointer, '.', '/');
  return yaml_.line(pointer);
}

// `of_section`: where a section is free or read whole, its keys have its fate.
void PlanYaml::list(const Json& section, const std::string& before, const std::set<std::string>& free,
                    const OptionFate* of_section) {
  for (const auto& [key, value] : section.items()) {
    const std::string path = before + key;
    const bool is_free = free.contains(path) || free.contains("*." + key) || value.is_null();
    const auto below = read_.lower_bound(path + ".");
    const bool is_opened = below != read_.end() && below->starts_with(path + ".");
    const bool is_read = read_.contains(path) && !(value.is_object() && is_opened);
    const OptionFate own = is_read ? OptionFate::used : is_free ? OptionFate::free : OptionFate::unknown;
    const OptionFate fate = of_section != nullptr && own == OptionFate::unknown ? *of_section : own;
    if (value.is_object() && !value.empty()) {
      list(value, path + ".", free, fate == OptionFate::unknown ? nullptr : &fate);
      continue;
    }
    if (fate == OptionFate::unknown) unknown_.push_back(path);
    const bool is_unknown = fate == OptionFate::unknown;
    imported.options.push_back({path, value.is_structured() ? "" : value.dump(),
                                line(path) > 0 ? fmt::format("line {}", line(path)) : "", fate, "",
                                is_unknown ? nearest_name(path, {read_.begin(), read_.end()}) : ""});
  }
  if (before.empty() && !unknown_.empty())
    imported.notes.push_back(fmt::format("{} keys are unknown, and ignored with unknown effect: {}",
                                         unknown_.size(), join(unknown_)));
}

}  // namespace rehearse
