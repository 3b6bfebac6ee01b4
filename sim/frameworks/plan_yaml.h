// Which plan does another program's YAML describe? Each key that is asked for counts as read.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// An unsupported key. `counted` is the value, in JSON, that is counted whatever the file says. `changes`
// says what another value does to the answer, where that may be above 10 % (base/omitted_effect.h).
struct CountedKey {
  const char* path;
  const char* counted;
  const char* effect;
  const char* changes = "";
};

// Which values of another type does the program's own parser turn into the type of a field?
enum class Typing : std::uint8_t {
  strict,  // none: dacite, HfArgumentParser.parse_dict, OmegaConf without a schema
  words,   // "32" becomes 32: argparse on the defaults of a file, OmegaConf with a schema
  lax      // and 32.0 becomes 32: pydantic
};

// Splits a text at its blanks.
std::set<std::string> keys_of(const char* words);

// Changes ASCII letters alone.
std::string in_upper_case(std::string text);

class PlanYaml {
 public:
  // `yaml`, `file` and `request` outlive it.
  PlanYaml(const YamlText& yaml, const std::string& file, const ImportRequest& request, Typing typing);

  const Json* find(const std::string& path);  // null where it is absent or null
  // The fallback is for a key that is absent or null, and for "auto", which is noted. Any other value becomes
  // the type as the program's parser does it, or a violation. `pointer` names the scenario's field. Where the
  // command line gives that field, the file's value is not used.
  std::int64_t integer(const std::string& path, std::int64_t fallback, const std::string& pointer = "",
                       std::int64_t least = 0);
  // A degree or size for which the program writes -1 as "not set" or "the rest": nothing then.
  std::optional<std::int64_t> set_integer(const std::string& path, const std::string& pointer = "");
  double number(const std::string& path, double fallback, double least = 0);
  bool on(const std::string& path, bool fallback = false);
  // The value of the word; a violation names the words where it is another one.
  std::string choice(const std::string& path, const std::map<std::string, std::string>& words,
                     const std::string& fallback);
  std::string text(const std::string& path);  // "" where it is absent
  std::string place(const std::string& path) const;
  const std::string& file() const { return file_; }
  bool is_over(const std::string& pointer) const;  // whether the command line gives the scenario's field
  void note(const std::string& path, const std::string& text, const std::string& changes = "");
  // Where the file's value differs from the counted one, notes that it is ignored, and the effect.
  void ignore_unless(const std::string& path, const Json& counted, const std::string& effect,
                     const std::string& changes = "");
  void ignore_unless(std::span<const CountedKey> keys, const std::string& before = "");
  void write_gpus(std::int64_t gpus);  // unless the command line gives them

  // Lists every key of the file with its fate. `free`: paths of keys and sections; "*.a" is a key of any
  // section.
  Imported finish(const std::set<std::string>& free);

  Imported imported;
  std::vector<Violation> violations;

 private:
  int line(const std::string& path) const;
  bool is_auto(const std::string& path, const Json& value, const std::string& counted);
  void refuse(const std::string& path, const Json& value, const std::string& rule,
              const std::string& nearest = "");
  std::optional<double> number_of(const Json& value) const;
  std::optional<std::int64_t> whole_of(const Json& value) const;
  void list(const Json& section, const std::string& before, const std::set<std::string>& free,
            const OptionFate* of_section);

  const YamlText& yaml_;
  const std::string& file_;
  const ImportRequest& request_;
  Typing typing_;
  std::set<std::string> read_;
  std::vector<std::string> unknown_;
};

}  // namespace rehearse
