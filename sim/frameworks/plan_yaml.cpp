#include "frameworks/plan_yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
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

PlanYaml::PlanYaml(const YamlText& yaml, const std::string& file, const ImportRequest& request, Typing typing)
    : yaml_(yaml), file_(file), request_(request), typing_(typing) {
  imported.scenario = {{"schema", "rehearse.scenario/1"}, {"title", "From " + file}};
}

const Json* PlanYaml::find(const std::string& path) {
  read_.insert(path);
  const Json* at = at_path(yaml_.json, path);
  return at == nullptr || at->is_null() ? nullptr : at;
}

void PlanYaml::refuse(const std::string& path, const Json& value, const std::string& rule,
                      const std::string& nearest) {
  if (std::ranges::count(violations, place(path), &Violation::pointer) > 0) return;  // asked for again
  const bool is_open = value.is_string() && value.get<std::string>().find('$') != std::string::npos;
  violations.push_back({file_, place(path), rule, "found " + value.dump().substr(0, 200),
                        is_open ? words_that_decide(value.get<std::string>(), file_) : nearest});
}

bool PlanYaml::is_auto(const std::string& path, const Json& value, const std::string& counted) {
  if (value != "auto") return false;
  const std::string text = fmt::format("is auto, which the run decides: {} is counted", counted);
  if (std::ranges::count(imported.notes, place(path) + " " + text) == 0) note(path, text);
  return true;
}

std::optional<double> PlanYaml::number_of(const Json& value) const {
  if (value.is_number()) return value.get<double>();
  if (typing_ == Typing::strict || !value.is_string()) return std::nullopt;
  const std::string word = value.get<std::string>();
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> PlanYaml::whole_of(const Json& value) const {
  const std::optional<double> number = number_of(value);
  if (!number || std::abs(*number) > kMaxOfTrainer || *number != std::floor(*number)) return std::nullopt;
  const bool is_written_whole =
      value.is_number_integer() ||
      (value.is_string() && value.get<std::string>().find_first_of(".eE") == std::string::npos);
  if (!is_written_whole && (typing_ != Typing::lax || value.is_string())) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::int64_t PlanYaml::integer(const std::string& path, std::int64_t fallback, const std::string& pointer,
                               std::int64_t least) {
  imported.asked[path] = "integer";
  const Json* value = find(path);
  if (value == nullptr || is_auto(path, *value, std::to_string(fallback))) return fallback;
  if (const auto whole = whole_of(*value); whole && *whole >= least) return *whole;
  if (request_.over.contains(pointer)) return fallback;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  const auto most = static_cast<double>(kMaxOfTrainer), fewest = static_cast<double>(least);
  refuse(path, *value, fmt::format("must be an integer from {} to {}", least, kMaxOfTrainer),
         std::isnan(number) ? "" : fmt::format("{:.0f}", std::floor(std::clamp(number, fewest, most))));
  return fallback;
}

std::optional<std::int64_t> PlanYaml::set_integer(const std::string& path, const std::string& pointer) {
  constexpr std::int64_t kNotSet = -1;
  const std::int64_t found = integer(path, kNotSet, pointer, kNotSet);
  return found == kNotSet ? std::nullopt : std::optional(found);
}

double PlanYaml::number(const std::string& path, double fallback, double least) {
  imported.asked[path] = "number";
  const Json* value = find(path);
  if (value == nullptr || is_auto(path, *value, fmt::format("{:g}", fallback))) return fallback;
  const std::optional<double> number = number_of(*value);
  if (number && *number >= least && *number <= kMaxClipGrad) return *number;
  refuse(path, *value, fmt::format("must be a number from {:g} to {:g}", least, kMaxClipGrad),
         number && !std::isnan(*number) ? fmt::format("{:g}", std::clamp(*number, least, kMaxClipGrad)) : "");
  return fallback;
}

bool PlanYaml::on(const std::string& path, bool fallback) {
  imported.asked[path] = "switch";
  const Json* value = find(path);
  if (value == nullptr || is_auto(path, *value, fallback ? "true" : "false")) return fallback;
  if (value->is_boolean()) return value->get<bool>();
  if (typing_ != Typing::strict) {
    static const std::set<std::string> yes = {"TRUE", "YES", "ON", "Y", "T", "1"},
                                       no = {"FALSE", "NO", "OFF", "N", "F", "0"};
    const std::string word = in_upper_case(value->is_string() ? value->get<std::string>() : value->dump());
    if (yes.contains(word)) return true;
    if (no.contains(word)) return false;
  }
  refuse(path, *value, "must be true or false");
  return fallback;
}

std::string PlanYaml::choice(const std::string& path, const std::map<std::string, std::string>& words,
                             const std::string& fallback) {
  imported.asked[path] = "word";
  const std::string word = text(path);
  if (word.empty()) return fallback;
  if (const auto found = words.find(word); found != words.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [name, value] : words) known.push_back(name);
  refuse(path, *find(path), "must be one of " + join(known), nearest_name(word, known));
  return fallback;
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

void PlanYaml::note(const std::string& path, const std::string& text, const std::string& changes) {
  imported.notes.push_back(fmt::format("{} {}", place(path), text));
  const Json* value = find(path);
  const bool is_shown = value != nullptr && !value->is_structured() && *value != true;
  const std::string word = !is_shown ? "" : value->is_string() ? value->get<std::string>() : value->dump();
  omit(imported, is_shown ? path + " " + word.substr(0, 200) : path,
       text.substr(text.find(": ") == std::string::npos ? 0 : text.find(": ") + 2), changes);
}

void PlanYaml::ignore_unless(const std::string& path, const Json& counted, const std::string& effect,
                             const std::string& changes) {
  const Json* value = find(path);
  if (value != nullptr && *value != counted)
    note(path, fmt::format("{} is ignored: {}", value->dump().substr(0, 200), effect), changes);
}

void PlanYaml::ignore_unless(std::span<const CountedKey> keys, const std::string& before) {
  for (const CountedKey& each : keys)
    ignore_unless(before + each.path, Json::parse(each.counted), each.effect, each.changes);
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
