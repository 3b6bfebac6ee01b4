#include "cli/flags.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/utf8.h"
#include "cli/flag_groups.h"

namespace rehearse {

namespace {

std::int64_t parse_integer(const Flag& flag, std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(
        {"command line", flag.name, "must be an integer", fmt::format("found \"{}\"", text), ""});
  }
  return number;
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

// JSON holds no other text.
std::string parse_text(const Flag& flag, const std::string& text) {
  if (!is_utf8(text))
    throw InputError(
        {"command line", flag.name, "must be text in UTF-8", fmt::format("found \"{}\"", text), ""});
  return text;
}

std::string all_names(const Flag& flag) {
  std::string names = flag.name;
  for (const std::string& alias : flag.aliases) names += "," + alias;
  return names;
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

const std::vector<Flag>& scenario_flags() {
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> all;
    for (const auto& group :
         {flags_of_inputs, flags_of_ranks, flags_of_kernels, flags_of_state, flags_of_conditions})
      std::ranges::move(group(), std::back_inserter(all));
    return all;
  }();
  return flags;
}

void add_scenario_flags(CLI::App& verb, GivenFlags& given) {
  verb.add_option("scenario", given.file, "scenario file")->option_text("[SCENARIO.json]");
  for (const Flag& flag : scenario_flags()) {
    verb.add_option_function<std::string>(
            all_names(flag), [&given, &flag](const std::string& value) { given.values[flag.name] = value; },
            flag.help)
        ->option_text(flag.value)
        ->take_last()
        ->group("Experiment");
  }
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
}

ScenarioSource collect(const GivenFlags& given) {
  ScenarioSource source;
  source.file = given.file;
  if (!given.file.empty()) source.json = JsonReader::open(given.file).json();
  write_flags(given, source);
  return source;
}

}  // namespace rehearse
