#include "scenario/flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "base/json_kind.h"
#include "base/utf8.h"
#include "scenario/set_field.h"

namespace rehearse {

namespace {

// The same numbers in sweep's notation, where the text is a list or a range in another notation.
std::string as_list(std::string_view text) {
  const auto digit = [](char letter) { return letter >= '0' && letter <= '9'; };
  std::string list;
  std::size_t numbers = 0;
  char separator = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins = digit(text[i]) && (i == 0 || !digit(text[i - 1]));
    if (begins && ++numbers > 1) list += separator == '-' || separator == ':' ? ':' : ',';
    if (digit(text[i])) {
      if (begins && numbers == 3 && separator == ':') list += '+';
      list += text[i];
    } else if (std::string_view(" ,;:-.").find(text[i]) == std::string_view::npos) {
      return "";
    } else {
      separator = text[i];
    }
  }
  return numbers > 1 ? list : "";
}

[[noreturn]] void reject_integer(const Flag& flag, std::string_view text) {
  const std::string list = as_list(text);
  throw InputError({"command line", flag.name,
                    list.empty()
                        ? "must be an integer"
                        : "must be one integer; `rehearse sweep` takes lists (1,2,4) and ranges (1:8, "
                          "1:8:*2, 1:9:+2)",
                    fmt::format("found \"{}\"", text),
                    list.empty() ? "" : fmt::format("rehearse sweep ... {} {}", flag.name, list)});
}

// "8k" is 8,192: sequences, batches and ranks are counted in powers of two.
std::int64_t parse_integer(const Flag& flag, std::string_view text) {
  constexpr std::int64_t kKilo = 1024;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const bool thousands = rest == "k" || rest == "K";
  if (error != std::errc() || (!rest.empty() && !thousands)) reject_integer(flag, text);
  if (thousands && std::abs(number) > std::numeric_limits<std::int64_t>::max() / kKilo)
    reject_integer(flag, text);
  return thousands ? number * kKilo : number;
}

double parse_number(const Flag& flag, std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError({"command line", flag.name, "must be a number", fmt::format("found \"{}\"", text), ""});
  }
  return number;
}

Json parse_integers(const Flag& flag, std::string_view text) {
  Json list = Json::array();
  while (true) {
    const std::size_t comma = text.find(',');
    list.push_back(parse_integer(flag, text.substr(0, comma)));
    if (comma == std::string_view::npos) return list;
    text.remove_prefix(comma + 1);
  }
}

// JSON allows only UTF-8 text.
std::string parse_text(const Flag& flag, const std::string& text) {
  if (!is_utf8(text))
    throw InputError(
        {"command line", flag.name, "must be text in UTF-8", fmt::format("found \"{}\"", text), ""});
  return text;
}

}  // namespace

Json parse_value(const Flag& flag, const std::string& text) {
  switch (flag.kind) {
    case FlagKind::integer:
      return parse_integer(flag, text);
    case FlagKind::number:
      return parse_number(flag, text);
    case FlagKind::layers:
      return text == "auto" ? Json(text) : parse_integers(flag, text);
    case FlagKind::text:
      return parse_text(flag, text);
    case FlagKind::on_off:
      if (text == "on" || text == "off") return text == "on";
      throw InputError(
          {"command line", flag.name, "must be on or off", fmt::format("found \"{}\"", text), ""});
  }
  return nullptr;
}

bool holds_commas(const Flag& flag) {
  return flag.kind == FlagKind::layers || flag.value == "LIST" || flag.value == "LAYOUT";
}

namespace {

struct KindOfField {
  FlagKind operator()(const IntegerField&) const { return FlagKind::integer; }
  FlagKind operator()(const NumberField&) const { return FlagKind::number; }
  FlagKind operator()(const SwitchField&) const { return FlagKind::on_off; }
  FlagKind operator()(const LayersField&) const { return FlagKind::layers; }
  FlagKind operator()(ShorthandField field) const {
    if (field == ShorthandField::integer) return FlagKind::integer;
    return field == ShorthandField::on_off ? FlagKind::on_off : FlagKind::text;
  }
  FlagKind operator()(const auto&) const { return FlagKind::text; }
};

std::vector<std::string> words_of(const FieldType& type) {
  if (const auto* choice = std::get_if<ChoiceField>(&type)) return choice->words;
  if (const auto* choices = std::get_if<ChoicesField>(&type)) return choices->words;
  return {};
}

// A few short words are shown in place of a value's name.
std::string value_shown(const FieldText& field, FlagKind kind, const std::vector<std::string>& words) {
  constexpr std::size_t kShort = 10;
  if (*field.value != '\0') return field.value;
  if (kind == FlagKind::on_off) return "on|off";
  const std::string all = join(words, "|");
  return all.size() <= kShort ? all : "NAME";
}

std::string help_of(const FieldText& field, const std::string& value, const std::vector<std::string>& words) {
  const bool names = value == "NAME" || value == "LIST";
  return names && !words.empty() ? fmt::format("{}: {}", field.help, join(words)) : field.help;
}

Flag flag_of(const FieldText& field, const std::string& folder, FlagKind kind,
             std::vector<std::string> words) {
  const std::string value = value_shown(field, kind, words);
  return {field.flag,
          field.aliases,
          folder + field.key,
          kind,
          value,
          help_of(field, value, words),
          field.by_default,
          field.group,
          field.daily,
          std::move(words)};
}

}  // namespace

const std::vector<Flag>& scenario_flags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all;
    for (const RunField& field : run_fields()) all.push_back(flag_of(field, "/", field.kind, {}));
    for (const PlanField& field : plan_fields()) {
      all.push_back(flag_of(field, "/plan/", std::visit(KindOfField{}, field.type), words_of(field.type)));
      all.back().by_default = default_text(field);
    }
    return all;
  }();
  return flags;
}

namespace {

void write_sets(const GivenFlags& given, ScenarioSource& source) {
  for (const std::string& set : given.sets) {
    const SetField field = parse_set(set);
    const auto [known, is_new] = source.flag_of.try_emplace(field.pointer, "--set");
    if (!is_new) reject_twice("--set", field.path);
    write_field(source.json, field.pointer, field.value(field.text), "--set");
  }
}

}  // namespace

bool is_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".json") || name.ends_with(".csv");
}

void write_flags(const GivenFlags& given, ScenarioSource& source) {
  for (const Flag& flag : scenario_flags()) {
    const auto value = given.values.find(flag.name);
    if (value == given.values.end()) continue;
    if (flag.pointer.starts_with("/plan/") && !source.json.value("plan", Json::object()).is_object()) {
      throw InputError({source.file, "/plan", "must be a JSON object", "", ""});
    }
    source.json[Json::json_pointer(flag.pointer)] = parse_value(flag, value->second);
    source.flag_of[flag.pointer] = flag.name;
  }
  write_sets(given, source);
}

ScenarioSource collect(const GivenFlags& given) {
  ScenarioSource source;
  source.file = given.file;
  source.large = given.large;
  if (!given.file.empty()) source.json = JsonReader::open(given.file).json();
  if (!given.file.empty()) require_kind(source.json, given.file, JsonKind::scenario);
  write_flags(given, source);
  return source;
}

}  // namespace rehearse
