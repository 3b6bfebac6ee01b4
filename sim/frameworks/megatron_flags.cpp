#include "frameworks/megatron_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>

#include "base/names.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxViolations = 20;
constexpr std::size_t kMaxShown = 200;                       // letters of a value
constexpr std::int64_t kMaxInteger = std::int64_t{1} << 31;  // products of two stay exact

bool costs_nothing(const MegatronOption& option) {
  return option.role == OptionRole::free || option.role == OptionRole::unmodelled;
}

// Whether the command line gives the field, or the model, that decides in place of the option.
bool is_decided_elsewhere(const MegatronOption& option, const SaidOverFile& over) {
  return over.contains(option.pointer) || over.contains(option.unless) ||
         (option.role == OptionRole::shape && over.contains("/model"));
}

bool is_word_for(bool value, const std::string& word) {
  return in_lower_case(word) == (value ? "true" : "false");
}

std::string place_of(const ScriptFlag& flag) {
  return fmt::format("line {}: {}", flag.line, flag.source.empty() ? flag.name : flag.source);
}

template <typename Number>
bool is_number(const std::string& text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string shown_values(const ScriptFlag& flag) {
  return fmt::format("found \"{}\"", join(flag.values, " ").substr(0, kMaxShown));
}

}  // namespace

MegatronFlags::MegatronFlags(ScriptFlags found, std::string file, const ImportRequest& request)
    : file_(std::move(file)), over_(request.over) {
  std::vector<Violation> violations;
  notes_ = std::move(found.notes);
  files_ = request.shell.files;
  files_.merge(found.written);
  for (ImportedOption& other : found.others) list(std::move(other), false);
  if (found.flags.empty()) violations.push_back({file_, "", "holds no options", "", "--num-layers 32 ..."});
  std::map<std::string, std::string> nearest;  // by unknown name, which a text may repeat
  for (ScriptFlag& flag : found.flags) {
    const bool left_out = std::ranges::count(request.ignored, flag.name) > 0;
    const MegatronOption* option = find_megatron_option(flag.name);
    ImportedOption seen;
    seen.name = flag.source.empty() ? flag.name : flag.source;
    if (option != nullptr) seen.known_as = {option->name()};
    seen.value = join(flag.values, " ").substr(0, kMaxShown);
    if (flag.line > 0) seen.place = fmt::format("line {}", flag.line);
    if (left_out) {
      seen.fate = OptionFate::ignored;
      seen.effect = "as --ignore says";
    } else if (option == nullptr) {
      seen.fate = OptionFate::unknown;
      const auto [known, is_new] = nearest.try_emplace(flag.name);
      if (is_new) known->second = nearest_name(flag.name, megatron_option_names());
      seen.nearest = known->second;
    } else if (option->role == OptionRole::free) {
      seen.fate = OptionFate::free;
    }
    if (!flag.is_default) list(std::move(seen), !flag.source.empty());
    if (left_out || option == nullptr || violations.size() >= kMaxViolations) continue;
    flag.name = option->name();
    take(std::move(flag), violations);
  }
  if (!request.vocabulary.empty()) flags_["--vocab-size"] = {"--vocab-size", {request.vocabulary}, 0};
  note_unknown();
  add_undecided(violations);
  if (!violations.empty()) throw InputError(std::move(violations));
  write_over();
}

// A key of a file that sets several options is listed once.
void MegatronFlags::list(ImportedOption option, bool is_key) {
  const auto [at, is_new] = listed_.try_emplace({option.name, option.place}, options_.size());
  if (!is_key || is_new) return options_.push_back(std::move(option));
  ImportedOption& same = options_[at->second];
  same.known_as.insert(same.known_as.end(), option.known_as.begin(), option.known_as.end());
  if (same.fate == OptionFate::free) same.fate = option.fate;
}

// A text without a known option is not for Megatron-LM.
void MegatronFlags::note_unknown() {
  std::vector<std::string> unknown;
  for (const ImportedOption& option : options_)
    if (option.fate == OptionFate::unknown)
      unknown.push_back(option.nearest.empty()
                            ? fmt::format("{} ({})", option.name, option.place)
                            : fmt::format("{} ({}; near {})", option.name, option.place, option.nearest));
  if (unknown.empty()) return;
  if (flags_.empty() && unknown.size() == options_.size())
    throw InputError(
        {file_, "", "holds no option of Megatron-LM", "found " + join(unknown).substr(0, kMaxShown), ""});
  notes_.push_back(fmt::format(
      "{} unknown to Megatron-LM, ignored with unknown effect: {}",
      unknown.size() == 1 ? "1 option is" : fmt::format("{} options are", unknown.size()), join(unknown)));
}

std::vector<std::string> missing_of_shape(const MegatronFlags& flags) {
  const bool hybrid = flags.has("--hybrid-layer-pattern") || flags.has("--hybrid-override-pattern");
  std::vector<std::string> missing;
  for (const char* name : {"--num-layers", "--hidden-size", "--num-attention-heads"})
    if (!flags.has(name) && !(hybrid && std::string_view(name) == "--num-layers")) missing.emplace_back(name);
  return missing;
}

// Three forms of an option are violations: in an undecided branch, with unset words, or with a value that it
// does not have. An option that costs nothing, or that the command line replaces, is no violation.
void MegatronFlags::take(ScriptFlag flag, std::vector<Violation>& violations) {
  const MegatronOption& option = *find_megatron_option(flag.name);
  if (!is_settled(flag, option, violations)) return;
  const bool is_switch = option.takes == OptionTakes::nothing;
  const bool is_off = flag.values.size() == 1 && is_word_for(false, flag.values[0]);
  if (is_off && (!option.takes_number() || costs_nothing(option))) return void(flags_.erase(flag.name));
  if (is_switch && flag.values.size() == 1) {  // forks read a word: HabanaAI/Megatron-LM, arguments.py
    if (flag.values[0] == "0") return void(flags_.erase(flag.name));
    if (flag.values[0] == "1" || is_word_for(true, flag.values[0])) flag.values.clear();
  }
  const bool may_repeat = !option.many.empty() && !flag.values.empty();
  if (may_repeat && std::ranges::count(flag.values, flag.values.front()) == std::ssize(flag.values))
    flag.values.resize(1);
  std::vector<Violation> broken;
  require_values(flag, option, broken);
  if (!broken.empty() && is_decided_elsewhere(option, over_)) return;
  violations.insert(violations.end(), broken.begin(), broken.end());
  flags_[flag.name] = std::move(flag);
}

// Checks values as argparse does.
void MegatronFlags::require_values(const ScriptFlag& flag, const MegatronOption& option,
                                   std::vector<Violation>& violations) {
  const auto must = [&](const std::string& rule, const std::string& nearest = "") {
    violations.push_back({file_, place_of(flag), rule, shown_values(flag), nearest});
  };
  if (option.takes == OptionTakes::nothing) {
    if (!flag.values.empty()) must("takes no value");
    return;
  }
  for (const std::string& value : flag.values) {
    if (option.choices.empty() || std::ranges::count(option.choices, value) > 0) continue;
    const std::string near = nearest_name(value, option.choices);
    // Forks have more tokenizers, with names near to each other; a note states the assumed vocabulary.
    if (option.open && (near.empty() || value.starts_with(near) || option.role == OptionRole::shape)) {
      if (!near.empty() && !value.starts_with(near))
        notes_.push_back(fmt::format("{} {} is not known, and taken as a fork's own; near {}", place_of(flag),
                                     value, near));
      continue;
    }
    if (near.empty() && costs_nothing(option)) {  // a fork's, which decides nothing here
      notes_.push_back(
          fmt::format("{} {} is no value of Megatron-LM's: {}", place_of(flag), value,
                      option.role == OptionRole::free ? "the option costs nothing" : option.effect));
      continue;
    }
    must("must be one of " + join(option.choices), near);
  }
  if (costs_nothing(option)) return;
  if (flag.values.empty()) return must("needs a value");
  if (option.takes_number() && flag.values.size() > 1)
    return must(option.many.empty() ? "takes one value" : option.many);
  if (option.takes == OptionTakes::integer && !is_number<std::int64_t>(flag.values[0]))
    must(fmt::format("must be an integer from 0 to {}", kMaxInteger));
  if (option.takes == OptionTakes::number && !is_number<double>(flag.values[0])) must("must be a number");
}

bool MegatronFlags::is_settled(ScriptFlag& flag, const MegatronOption& option,
                               std::vector<Violation>& violations) {
  const bool over = is_decided_elsewhere(option, over_);
  if (!flag.condition.empty() && over) return false;
  const bool is_undecided = !flag.condition.empty() || join(flag.values, "").find('$') != std::string::npos;
  if (is_undecided && (flag.name == "--nproc-per-node" || flag.name == "--nnodes")) {
    notes_.push_back(fmt::format("line {}: {} is not decided{}: pass --gpus", flag.line, flag.name,
                                 flag.condition.empty() ? "" : " (" + flag.condition + ")"));
    return false;
  }
  if (!flag.condition.empty() && !costs_nothing(option)) {
    auto same = std::ranges::find(undecided_, flag.decides, &Undecided::decides);
    if (same == undecided_.end())
      same = undecided_.insert(same, {flag.decides, place_of(flag), flag.condition, {}});
    if (std::ranges::count(same->names, flag.name) == 0) same->names.push_back(flag.name);
  }
  if (!flag.condition.empty()) return costs_nothing(option);
  const auto unset = std::ranges::find_if(
      flag.values, [](const std::string& value) { return value.find('$') != std::string::npos; });
  if (unset == flag.values.end()) return true;
  if (costs_nothing(option)) return flag.values.clear(), option.choices.empty();
  if (over) return false;
  if (option.takes == OptionTakes::nothing) {
    notes_.push_back(fmt::format("line {}: {} is not set in the text: counted as empty", flag.line, *unset));
    flag.values.clear();
    return true;
  }
  violations.push_back({file_, place_of(flag), "must have a value that is set in the text",
                        fmt::format("found \"{}\"", unset->substr(0, kMaxShown)),
                        words_that_decide(*unset, file_)});
  return false;
}

// These stand before other violations, which may follow from them.
void MegatronFlags::add_undecided(std::vector<Violation>& violations) const {
  std::vector<Violation> all;
  for (const Undecided& each : undecided_) {
    std::string others, ignored;
    for (const std::string& name : each.names) {
      ignored += (ignored.empty() ? "" : ",") + name.substr(2);
      if (name != each.names.front()) others += ", " + name;
    }
    all.push_back({file_, each.place + others, "is in a branch whose condition the text does not decide",
                   each.condition, fmt::format("{}, or --ignore {}", each.decides, ignored)});
  }
  violations.insert(violations.begin(), all.begin(), all.end());
}

// Writes the command line's values as options, so that derived values follow them too.
void MegatronFlags::write_over() {
  if (is_over("/plan/vpp")) flags_.erase("--num-layers-per-virtual-pipeline-stage");
  std::set<std::string> written;
  for (const MegatronOption& option : megatron_options()) {
    const auto said = over_.find(option.pointer);
    if (option.pointer.empty() || said == over_.end()) continue;
    flags_.erase(option.name());
    if (!written.insert(option.pointer).second) continue;
    if (option.takes != OptionTakes::nothing)
      flags_[option.name()] = {option.name(), {said->second}, 0};
    else if ((said->second == "on") != option.off)
      flags_[option.name()] = {option.name(), {}, 0};
  }
}

const std::string* MegatronFlags::text_of_file(const std::string& path) const {
  const auto found = files_.find(path.substr(path.find_last_of('/') + 1));
  return found == files_.end() ? nullptr : &found->second;
}

void MegatronFlags::fail(const std::string& name, const std::string& rule, const std::string& nearest) const {
  const auto flag = flags_.find(name);
  if (flag == flags_.end()) throw InputError({file_, name, rule, "not given", nearest});
  const bool typed = flag->second.line == 0;
  throw InputError({typed ? "command line" : file_, typed ? name : place_of(flag->second), rule,
                    shown_values(flag->second), nearest});
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
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || value < 0 || value > kMaxInteger)
    fail(name, fmt::format("must be an integer from 0 to {}", kMaxInteger));
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
