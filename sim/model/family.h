// What does each model type of Hugging Face mean?
//
// scenarios/families/hugging_face.json has a row for each type: parts that its class implies, defaults of
// absent keys, and its names of the parts that all families share.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

inline constexpr const char* kFamilyRows = "scenarios/families/hugging_face.json";

struct ModelFamily {
  std::string model_type;
  std::vector<std::string> classes;  // as "architectures" names them
  std::vector<std::string> types;    // other model types that files of these classes state
  std::string reader;                // "": that of known parts (read_family)
  std::string refused;               // why it cannot be read; "": it can
  Json names;                        // by part: the file's key, or an array of keys of which a file has one
  Json implied;                      // by part: what the class has whatever the file says
  Json absent;                       // by part: what the class takes where a file lacks the key
  Json only;                         // by key: the values that can be read
  Json cases;                        // array of {"where": {key: value}, "implied": {part: value}}
  Json per_layer;                    // array of keys that may hold an array with a value for each layer
  Json approximated;                 // by part: the effect of its cost that no formula here has; null: unsaid

  bool reads_like(const ModelFamily& other) const;
};

const std::vector<ModelFamily>& families();

// The family of `config`'s model_type, or where that is absent of its architectures. InputError where it is
// unknown or refused: the message names the way on.
const ModelFamily& family_of(const JsonReader& config);

// The family of that name, which --as gave.
const ModelFamily& family_named(const std::string& model_type, const std::string& file);

// A configuration seen through its family's row, by part.
class FamilyConfig {
 public:
  FamilyConfig(const JsonReader& file, const ModelFamily& family);

  const ModelFamily& family() const { return family_; }
  // The file's keys and what the class takes for absent ones.
  const JsonReader& file() const { return file_; }

  std::string name(const std::string& part) const;  // as the file calls it
  bool has(const std::string& part) const;          // not null
  bool contains(const std::string& part) const;     // null or not
  const Json& value(const std::string& part) const;
  std::int64_t integer(const std::string& part, std::int64_t least, std::int64_t most) const;
  std::int64_t integer_or(const std::string& part, std::int64_t fallback, std::int64_t least,
                          std::int64_t most) const;
  double number_or(const std::string& part, double fallback, double least, double most) const;
  bool boolean(const std::string& part, bool fallback = false) const;
  template <typename Enum>
  Enum choice_or(const std::string& part, Enum fallback, const std::map<std::string, Enum>& names) const {
    const auto [reader, key] = place(part);
    return reader.choice_or(key, fallback, names);
  }
  [[noreturn]] void fail(const std::string& part, const std::string& rule, const std::string& values = "",
                         const std::string& nearest = "") const;

 private:
  struct Place {
    const JsonReader& reader;
    std::string key;
  };
  Place place(const std::string& part) const;
  void take_cases();
  void require_known() const;

  const ModelFamily& family_;
  JsonReader file_;
  Json implied_;
  JsonReader row_;  // of what is implied
};

}  // namespace rehearse
