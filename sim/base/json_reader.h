// Strict reading of JSON input: every value is requested by name, type and range. Keys that nobody requested
// are an error.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/bounds.h"
#include "base/error.h"
#include "base/parse_work.h"
#include "base/quantity.h"

namespace rehearse {

using Json = nlohmann::ordered_json;

// Limits of a file. A larger one is not an input of this kind, and would take unexpected memory and time.
struct JsonLimits {
  std::size_t bytes = 16'000'000;
  std::int64_t values = kMaxParseWork;
  bool repeated_keys = false;  // in one object, where the last one counts
  // Keys that an object below the first keeps; additional ones are skipped. -1: all.
  std::int64_t kept_keys = -1;
};
inline constexpr JsonLimits kTraceLimits = {64'000'000, 8'000'000, true};

// Reads and parses a whole file. InputError names the file, line and column of a syntax error, a repeated key
// of an object, or the exceeded limit.
Json read_json_file(const std::string& path, const JsonLimits& limits = {});

// One JSON object at a place in a file. Every accessor throws InputError with that place. Every number is
// read with bounds. Copies share the record of which keys were read.
class JsonReader {
 public:
  static JsonReader open(const std::string& path);
  static JsonReader of_text(const std::string& text, const std::string& file);
  JsonReader(Json object, std::string file, std::string pointer = "");

  const Json& json() const { return json_; }
  const std::string& file() const { return file_; }
  const std::string& pointer() const { return pointer_; }
  bool has(const std::string& key) const;  // present and not null; counts as read

  JsonReader object(const std::string& key) const;
  std::vector<JsonReader> objects(const std::string& key) const;  // an array of objects
  const Json& value(const std::string& key) const;                // any type; required, null included

  std::int64_t integer(const std::string& key, std::int64_t least, std::int64_t most) const;
  std::int64_t integer_or(const std::string& key, std::int64_t fallback, std::int64_t least,
                          std::int64_t most) const;
  double number(const std::string& key, double least, double most) const;
  double number_or(const std::string& key, double fallback, double least, double most) const;
  // The same for values with a unit: a number in SI units, an array of them, or text such as "50GB/s".
  double number(const std::string& key, const Bounds& bounds) const;
  double number_or(const std::string& key, double fallback, const Bounds& bounds) const;
  std::vector<double> numbers(const std::string& key, const Bounds& bounds) const;
  double quantity(const std::string& key, const Bounds& bounds) const;
  // The number `found`, at `key` below this object.
  double within(const std::string& key, const Json& found, const Bounds& bounds) const;
  bool boolean_or(const std::string& key, bool fallback) const;
  std::string text(const std::string& key) const;
  std::string text_or(const std::string& key, const std::string& fallback) const;

  // The enum value with the name at `key`; the error lists the names and the nearest one.
  template <typename Enum>
  Enum choice(const std::string& key, const std::map<std::string, Enum>& names) const {
    const std::string name = text(key);
    const auto found = names.find(name);
    if (found == names.end()) {
      std::vector<std::string> legal;
      for (const auto& entry : names) legal.push_back(entry.first);
      fail_choice(key, name, legal);
    }
    return found->second;
  }

  template <typename Enum>
  Enum choice_or(const std::string& key, Enum fallback, const std::map<std::string, Enum>& names) const {
    return has(key) ? choice(key, names) : fallback;
  }

  // Keys that were never read, without comments, and the nearest key that was read, "" where none is near.
  std::vector<std::pair<std::string, std::string>> unread() const;

  // Throws for the first key that was never read, with the nearest key that was. Keys starting with '_' are
  // comments.
  void reject_unknown() const;

  // Keys that were requested, present or not.
  const std::set<std::string>& asked() const { return *read_; }

  [[noreturn]] void fail(const std::string& key, const std::string& rule, const std::string& values = "",
                         const std::string& nearest = "") const;

 private:
  [[noreturn]] void fail_choice(const std::string& key, const std::string& name,
                                const std::vector<std::string>& legal) const;
  [[noreturn]] void fail_absent(const std::string& key) const;
  const Json& required(const std::string& key) const;

  Json json_;
  std::string file_;
  std::string pointer_;
  std::shared_ptr<std::set<std::string>> read_;
};

}  // namespace rehearse
