// What does each model type of Hugging Face mean?
//
// scenarios/families/hugging_face.json has a row for each type. The row lists parts that the class implies,
// defaults of absent keys, and the type's own names of parts that all families share.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "model/model.h"

namespace rehearse {

inline constexpr const char* kFamilyRows = "scenarios/families/hugging_face.json";

struct ModelFamily {
  std::string model_type;
  std::vector<std::string> classes;  // class names in "architectures"
  std::vector<std::string> types;    // other model types in files of these classes
  std::string reader;                // "": the reader of known parts (read_family)
  std::string refused;               // why it cannot be read; "": it can be read
  Json names;                        // by part: the file's key, or an array of alternative keys
  Json implied;                      // by part: the value of the class, whatever the file states
  Json absent;                       // by part: the default of the class for an absent key
  Json only;                         // by key: the supported values
  Json cases;                        // array of {"where": {key: value}, "implied": {part: value}}
  Json per_layer;                    // array of keys that may hold an array with a value for each layer
  Json approximated;  // by part: its effect on cost that no formula here computes; null: no text

  bool reads_like(const ModelFamily& other) const;
};

const std::vector<ModelFamily>& families();

// The family of `config`'s model_type, or of its architectures where model_type is absent. InputError for an
// unknown or refused family: the message names the workaround.
const ModelFamily& family_of(const JsonReader& config);

// The family of the model type that --as gave. InputError where it is unknown.
const ModelFamily& family_named(const std::string& model_type, const std::string& file);

// A configuration read by part, through the row of its family.
class FamilyConfig {
 public:
  FamilyConfig(const JsonReader& file, const ModelFamily& family);

  const ModelFamily& family() const { return family_; }
  // The file's keys, and the class defaults of absent keys.
  const JsonReader& file() const { return file_; }

  std::string name(const std::string& part) const;  // the file's key for the part
  bool has(const std::string& part) const;          // present and not null
  bool contains(const std::string& part) const;     // present, null or not
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
  JsonReader row_;  // reads implied_
};

}  // namespace rehearse
