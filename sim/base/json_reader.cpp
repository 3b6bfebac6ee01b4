#include "base/json_reader.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <set>

#include "base/json_text.h"
#include "base/names.h"
#include "base/parse_work.h"
#include "base/text_file.h"

namespace rehearse {

namespace {

// During parsing, refuses input that would exhaust stack, memory or time.
class Guard {
 public:
  Guard(const std::string& path, const JsonLimits& limits) : work_(path, limits.values), limits_(limits) {}

  // Whether to keep the parsed value.
  bool note(int depth, Json::parse_event_t event, const Json& parsed) {
    work_.require_depth(depth);
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_[static_cast<std::size_t>(depth) + 1] = 0;
        work_.add(1);
        return true;
      case Json::parse_event_t::key:
        return note_key(depth);
      case Json::parse_event_t::object_end:
        if (static_cast<std::int64_t>(parsed.size()) < keys_[static_cast<std::size_t>(depth) + 1])
          repeats_ = repeats_ || !limits_.repeated_keys;
        return true;
      case Json::parse_event_t::array_start:
      case Json::parse_event_t::value:
        work_.add(1);
        return true;
      default:
        return true;
    }
  }

  bool repeats_keys() const { return repeats_; }

 private:
  bool note_key(int depth) {
    std::int64_t& keys = keys_[static_cast<std::size_t>(depth)];
    if (limits_.kept_keys >= 0 && depth > 1 && keys >= limits_.kept_keys) return false;
    work_.add(keys++ / kComparisonsOfValue);
    return true;
  }

  ParseWork work_;
  const JsonLimits& limits_;
  bool repeats_ = false;  // some object has a key twice
  std::array<std::int64_t, kMaxNesting + 2> keys_{};
};

// Parses again, so that other files need not record their keys. Comments may repeat theirs.
void refuse_repeated_keys(const std::string& text, const std::string& path) {
  std::array<std::set<std::string>, kMaxNesting + 2> met;
  std::string repeated;
  const auto noted = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    const auto at = static_cast<std::size_t>(depth);
    if (event == Json::parse_event_t::object_start) met[at + 1].clear();
    if (event != Json::parse_event_t::key) return true;
    const std::string key = parsed.get<std::string>();
    if (!met[at].insert(key).second && !key.starts_with("_")) repeated = key;
    return true;
  };
  [[maybe_unused]] const Json same = Json::parse(text, noted);
  if (!repeated.empty())
    throw InputError({path, "", "an object has a key twice", "found \"" + repeated + "\" again", ""});
}

// Flags and TOML may contain inf and nan, which JSON writes as null.
std::string shown(const Json& found) {
  const bool finite = !found.is_number_float() || std::isfinite(found.get<double>());
  return finite ? found.dump() : fmt::format("{}", found.get<double>());
}

}  // namespace

Json parse_json(const std::string& text, const std::string& path, const JsonLimits& limits) {
  Guard guard(path, limits);
  const auto noted = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    return guard.note(depth, event, parsed);
  };
  try {
    Json json = Json::parse(text, noted);
    if (guard.repeats_keys()) refuse_repeated_keys(text, path);
    return json;
  } catch (const nlohmann::json::exception& error) {
    // The library's name of the error, in brackets, has no meaning for the user.
    const std::string said = error.what();
    const std::size_t end = said.starts_with('[') ? said.find("] ") : std::string::npos;
    throw InputError(
        {path, "", "not valid JSON: " + said.substr(end == std::string::npos ? 0 : end + 2), "", ""});
  }
}

Json read_json_file(const std::string& path, const JsonLimits& limits) {
  return parse_json(read_text_file(path, limits.bytes), path, limits);
}

JsonReader JsonReader::open(const std::string& path) {
  return JsonReader(read_json_file(path), path);
}

JsonReader JsonReader::of_text(const std::string& text, const std::string& file) {
  return JsonReader(parse_json(text, file, {}), file);
}

JsonReader::JsonReader(Json object, std::string file, std::string pointer)
    : json_(std::move(object)),
      file_(std::move(file)),
      pointer_(std::move(pointer)),
      read_(std::make_shared<std::set<std::string>>()) {
  if (!json_.is_object()) {
    throw InputError(
        {file_, pointer_, "must be a JSON object", std::string("found ") + json_.type_name(), ""});
  }
}

bool JsonReader::has(const std::string& key) const {
  read_->insert(key);
  return json_.contains(key) && !json_.at(key).is_null();
}

void JsonReader::fail(const std::string& key, const std::string& rule, const std::string& values,
                      const std::string& nearest) const {
  throw InputError({file_, pointer_ + "/" + key, rule, values, nearest});
}

void JsonReader::fail_choice(const std::string& key, const std::string& name,
                             const std::vector<std::string>& legal) const {
  fail(key, "must be one of " + some_names(legal, name), fmt::format("found \"{}\"", name),
       nearest_name(name, legal));
}

void JsonReader::fail_absent(const std::string& key) const {
  if (json_.contains(key)) fail(key, "is null; a value is required");
  std::vector<std::string> present;
  for (const auto& item : json_.items()) present.push_back(item.key());
  const std::string near = nearest_name(key, present);
  fail(key, "is required", near.empty() ? "" : fmt::format("found \"{}\" instead", near));
}

const Json& JsonReader::required(const std::string& key) const {
  if (!has(key)) fail_absent(key);
  return json_.at(key);
}

const Json& JsonReader::value(const std::string& key) const {
  read_->insert(key);
  if (!json_.contains(key)) fail_absent(key);
  return json_.at(key);
}

JsonReader JsonReader::object(const std::string& key) const {
  return JsonReader(required(key), file_, pointer_ + "/" + key);
}

std::vector<JsonReader> JsonReader::objects(const std::string& key) const {
  const Json& array = required(key);
  if (!array.is_array()) fail(key, "must be an array", std::string("found ") + array.type_name());
  std::vector<JsonReader> readers;
  for (std::size_t i = 0; i < array.size(); ++i) {
    readers.emplace_back(array[i], file_, fmt::format("{}/{}/{}", pointer_, key, i));
  }
  return readers;
}

std::int64_t JsonReader::integer(const std::string& key, std::int64_t least, std::int64_t most) const {
  const Json& found = required(key);
  const auto refuse = [&](const std::string& nearest) {
    fail(key, fmt::format("must be an integer from {} to {}", least, most), "found " + shown(found), nearest);
  };
  if (!found.is_number_integer()) refuse("");
  if (found.is_number_unsigned() && found.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
    refuse(std::to_string(most));
  const auto number = found.get<std::int64_t>();
  if (number > most) refuse(std::to_string(most));
  if (number < least) refuse(std::to_string(least));
  return number;
}

std::int64_t JsonReader::integer_or(const std::string& key, std::int64_t fallback, std::int64_t least,
                                    std::int64_t most) const {
  return has(key) ? integer(key, least, most) : fallback;
}

double JsonReader::number(const std::string& key, double least, double most) const {
  const Json& found = required(key);
  const double number = found.is_number() ? found.get<double>() : std::nan("");
  if (!(number >= least && number <= most))
    fail(key, fmt::format("must be a number from {:g} to {:g}", least, most), "found " + shown(found));
  return number;
}

double JsonReader::number_or(const std::string& key, double fallback, double least, double most) const {
  return has(key) ? number(key, least, most) : fallback;
}

double JsonReader::within(const std::string& key, const Json& found, const Bounds& bounds) const {
  const bool is_number = found.is_number();
  const double number = is_number ? found.get<double>() : 0;
  if (!is_number || !bounds.hold(number))
    fail(key, "must be a number " + to_string(bounds), "found " + shown(found),
         is_number ? nearest_bound(bounds, number) : "");
  return number;
}

double JsonReader::number(const std::string& key, const Bounds& bounds) const {
  return within(key, required(key), bounds);
}

double JsonReader::number_or(const std::string& key, double fallback, const Bounds& bounds) const {
  return has(key) ? number(key, bounds) : fallback;
}

std::vector<double> JsonReader::numbers(const std::string& key, const Bounds& bounds) const {
  const Json& list = required(key);
  if (!list.is_array()) fail(key, "must be an array of numbers", "found " + shown(list));
  std::vector<double> numbers;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const bool is_legal = list[i].is_number() && bounds.hold(list[i].get<double>());
    // Large files have many numbers, so that a key is written for a refusal alone.
    numbers.push_back(is_legal ? list[i].get<double>()
                               : within(fmt::format("{}/{}", key, i), list[i], bounds));
  }
  return numbers;
}

double JsonReader::quantity(const std::string& key, const Bounds& bounds) const {
  const Json& found = required(key);
  const std::optional<double> number =
      found.is_string() ? parse_quantity(found.get<std::string>(), bounds.dimension) : std::nullopt;
  if (!number)
    fail(key, fmt::format("must be a quantity with its unit, such as {}", examples(bounds.dimension)),
         "found " + shown(found));
  if (!bounds.hold(*number))
    fail(key, "must be " + to_string(bounds), "found " + found.dump(), nearest_bound(bounds, *number));
  return *number;
}

bool JsonReader::boolean_or(const std::string& key, bool fallback) const {
  if (!has(key)) return fallback;
  const Json& found = value(key);
  if (!found.is_boolean()) fail(key, "must be true or false", "found " + found.dump());
  return found.get<bool>();
}

std::string JsonReader::text(const std::string& key) const {
  const Json& found = required(key);
  if (!found.is_string()) fail(key, "must be a string", "found " + found.dump());
  return found.get<std::string>();
}

std::string JsonReader::text_or(const std::string& key, const std::string& fallback) const {
  return has(key) ? text(key) : fallback;
}

std::vector<std::pair<std::string, std::string>> JsonReader::unread() const {
  std::vector<std::pair<std::string, std::string>> keys;
  const std::vector<std::string> known(read_->begin(), read_->end());
  for (const auto& [key, value] : json_.items())
    if (!read_->contains(key) && !key.starts_with('_')) keys.emplace_back(key, nearest_name(key, known));
  return keys;
}

void JsonReader::reject_unknown() const {
  for (const auto& item : json_.items()) {
    if (item.key().starts_with("_") || read_->contains(item.key())) continue;
    const std::vector<std::string> legal(read_->begin(), read_->end());
    fail(item.key(), "is not a known key; known are " + some_names(legal, item.key()), "",
         nearest_name(item.key(), legal));
  }
}

}  // namespace rehearse
