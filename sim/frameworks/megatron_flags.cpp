#include "frameworks/megatron_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "base/utf8.h"
#include "frameworks/megatron_names.h"

namespace rehearse {

MegatronFlags::MegatronFlags(const std::string& text, std::string file,
                             const std::vector<std::string>& ignored)
    : file_(std::move(file)) {
  constexpr std::size_t kMostViolations = 10;  // a text with more is no list of flags
  static const std::vector<std::string> known = known_megatron_flags();
  static const std::set<std::string> names(known.begin(), known.end());
  if (!is_utf8(text)) throw InputError({file_, "", "must be text in UTF-8", "", ""});
  std::vector<Violation> violations;
  for (ScriptFlag& flag : script_flags(text, file_)) {
    if (std::ranges::count(ignored, flag.name) > 0 || violations.size() == kMostViolations) continue;
    if (!names.contains(flag.name))
      violations.push_back({file_, fmt::format("line {}", flag.line),
                            "is no flag of Megatron-LM that is known", fmt::format("found {}", flag.name),
                            nearest_name(flag.name, known)});
    flags_[flag.name] = std::move(flag);
  }
  if (flags_.empty()) violations.push_back({file_, "", "holds no flags", "", "--num-layers 32 ..."});
  if (!violations.empty()) throw InputError(std::move(violations));
}

void MegatronFlags::fail(const std::string& name, const std::string& rule, const std::string& nearest) const {
  const auto flag = flags_.find(name);
  if (flag == flags_.end()) throw InputError({file_, name, rule, "not given", nearest});
  throw InputError({file_, fmt::format("line {}: {}", flag->second.line, name), rule,
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
    fail(name, found.starts_with('$') ? "must be a number that the text itself sets"
                                      : fmt::format("must be an integer from 0 to {}", kMost));
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
