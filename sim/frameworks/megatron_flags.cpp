#include "frameworks/megatron_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <span>

#include "base/names.h"
#include "base/utf8.h"
#include "frameworks/megatron_names.h"
#include "frameworks/megatron_text.h"
#include "frameworks/megatron_values.h"

namespace rehearse {

namespace {

constexpr std::size_t kMostViolations = 10;  // a text with more is no list of flags

const std::set<std::string>& known_names() {
  static const std::vector<std::string> known = known_megatron_flags();
  static const std::set<std::string> names(known.begin(), known.end());
  return names;
}

bool is_free(const std::string& name) {
  const auto among = [&](std::span<const char* const> list) {
    return std::ranges::any_of(list, [&](const char* each) { return name == each; });
  };
  const bool unmodelled =
      std::ranges::any_of(unmodelled_flags(), [&](const UnmodelledFlag& each) { return name == each.name; });
  return among(costless_flags()) || unmodelled || name == "--nnodes" || name.starts_with("--nproc");
}

// Megatron's names with underscores are those of ms-swift and of options files.
std::string spelled(const std::string& name) {
  std::string dashes = name;
  std::ranges::replace(dashes, '_', '-');
  return !known_names().contains(name) && known_names().contains(dashes) ? dashes : name;
}

std::string pointer_of(const std::string& name) {
  for (const DirectFlag& flag : direct_flags())
    if (name == flag.name) return flag.pointer;
  for (const Overridden& flag : overridden_flags())
    if (name == flag.name) return flag.pointer;
  return "";
}

bool is_of_shape(const std::string& name) {
  return std::ranges::any_of(shape_flags(), [&](const char* each) { return name == each; }) ||
         std::ranges::any_of(hybrid_flags(), [&](const char* each) { return name == each; });
}

bool is_word_for(bool value, const std::string& word) {
  return in_lower_case(word) == (value ? "true" : "false");
}

}  // namespace

MegatronFlags::MegatronFlags(const std::string& text, std::string file,
                             const std::vector<std::string>& ignored, const SaidOverFile& over)
    : file_(std::move(file)), over_(over) {
  if (!is_utf8(text)) throw InputError({file_, "", "must be text in UTF-8", "", ""});
  static const std::vector<std::string> known = known_megatron_flags();
  std::vector<Violation> violations;
  ScriptFlags found = megatron_text(text, file_, known_names());
  notes_ = std::move(found.notes);
  for (ScriptFlag& flag : found.flags) {
    flag.name = spelled(flag.name);
    if (std::ranges::count(ignored, flag.name) > 0 || violations.size() == kMostViolations) continue;
    if (!known_names().contains(flag.name))
      violations.push_back({file_, fmt::format("line {}", flag.line), "is not a known flag of Megatron-LM",
                            fmt::format("found {}", flag.name), nearest_name(flag.name, known)});
    take(std::move(flag), violations);
  }
  if (found.flags.empty()) violations.push_back({file_, "", "holds no flags", "", "--num-layers 32 ..."});
  if (!violations.empty()) throw InputError(std::move(violations));
  write_over();
}

bool names_shape(const MegatronFlags& flags) {
  return std::ranges::any_of(std::array{"--num-layers", "--hidden-size", "--num-attention-heads",
                                        "--hybrid-layer-pattern", "--hybrid-override-pattern"},
                             [&](const char* name) { return flags.has(name); });
}

// One that is given in a branch that nobody decides, with words that nobody set, or with a value that is none
// of its own is a violation, unless it costs nothing or the command line says it over the text.
void MegatronFlags::take(ScriptFlag flag, std::vector<Violation>& violations) {
  if (!is_settled(flag, violations)) return;
  if (flag.values.size() == 1 && is_word_for(false, flag.values[0])) return void(flags_.erase(flag.name));
  if (is_switch(flag.name) && flag.values.size() == 1 && is_word_for(true, flag.values[0]))
    flag.values.clear();
  const std::string where = fmt::format("line {}: {}", flag.line, flag.name);
  if (is_switch(flag.name) && !flag.values.empty())
    violations.push_back(
        {file_, where, "takes no value", fmt::format("found \"{}\"", join(flag.values, " ")), ""});
  const std::vector<std::string> legal = legal_values(flag.name);
  for (const std::string& value : flag.values)
    if (!legal.empty() && std::ranges::count(legal, value) == 0)
      violations.push_back({file_, where, "must be one of " + join(legal), fmt::format("found \"{}\"", value),
                            nearest_name(value, legal)});
  flags_[flag.name] = std::move(flag);
}

bool MegatronFlags::is_settled(ScriptFlag& flag, std::vector<Violation>& violations) {
  const bool over = is_over(pointer_of(flag.name)) || (is_over("/model") && is_of_shape(flag.name));
  const bool free = is_free(flag.name);
  if (!flag.condition.empty() && over) return false;
  const std::string where = fmt::format("line {}: {}", flag.line, flag.name);
  if (!flag.condition.empty() && !free)
    violations.push_back({file_, where, "is in a branch whose condition the text does not decide",
                          flag.condition,
                          fmt::format("set its variables in the first lines of the file, or --ignore {}",
                                      flag.name.substr(2))});
  if (!flag.condition.empty()) return free;
  const auto unset = std::ranges::find_if(
      flag.values, [](const std::string& value) { return value.find('$') != std::string::npos; });
  if (unset == flag.values.end() || free) return true;
  if (over) return false;
  if (is_switch(flag.name)) {
    notes_.push_back(fmt::format("line {}: {} is not set in the text: counted as empty", flag.line, *unset));
    flag.values.clear();
    return true;
  }
  violations.push_back({file_, where, "must have a value that is set in the text",
                        fmt::format("found \"{}\"", *unset),
                        "NAME=value in the first line of the file, or the flag of this command"});
  return false;
}

// As if the text said so: what else follows from the value does too.
void MegatronFlags::write_over() {
  if (is_over("/plan/vpp")) flags_.erase("--num-layers-per-virtual-pipeline-stage");
  std::set<std::string> written;
  for (const DirectFlag& flag : direct_flags()) {
    const auto said = over_.find(flag.pointer);
    if (said == over_.end()) continue;
    flags_.erase(flag.name);
    if (!written.insert(flag.pointer).second) continue;
    if (flag.value != FlagValue::on && flag.value != FlagValue::off)
      flags_[flag.name] = {flag.name, {said->second}, 0, ""};
    else if ((said->second == "on") == (flag.value == FlagValue::on))
      flags_[flag.name] = {flag.name, {}, 0, ""};
  }
}

void MegatronFlags::fail(const std::string& name, const std::string& rule, const std::string& nearest) const {
  const auto flag = flags_.find(name);
  if (flag == flags_.end()) throw InputError({file_, name, rule, "not given", nearest});
  const bool typed = flag->second.line == 0;
  throw InputError({typed ? "command line" : file_,
                    typed ? name : fmt::format("line {}: {}", flag->second.line, name), rule,
                    fmt::format("found \"{}\"", join(flag->second.values, " ")), nearest});
}

const std::vector<std::string>& MegatronFlags::values(const std::string& name) const {
  if (!has(name)) fail(name, "must be given");
  return flags_.at(name).values;
}

std::string MegatronFlags::text(const std::string& name) const {
  if (values(name).empty()) fail(name, "needs a value");
  return values(name).front();
}

std::string MegatronFlags::text_or(const std::string& name, const std::string& fallback) const {
  return has(name) ? text(name) : fallback;
}

std::int64_t MegatronFlags::integer(const std::string& name) const {
  const std::string found = text(name);
  constexpr std::int64_t kMost = std::int64_t{1} << 31;  // products of two stay exact
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || value < 0 || value > kMost)
    fail(name, fmt::format("must be an integer from 0 to {}", kMost));
  if (values(name).size() > 1) fail(name, "takes one value");
  return value;
}

std::int64_t MegatronFlags::integer_or(const std::string& name, std::int64_t fallback) const {
  return has(name) ? integer(name) : fallback;
}

double MegatronFlags::number(const std::string& name) const {
  const std::string found = text(name);
  double value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || !std::isfinite(value))
    fail(name, "must be a number");
  return value;
}

double MegatronFlags::number_or(const std::string& name, double fallback) const {
  return has(name) ? number(name) : fallback;
}

}  // namespace rehearse
