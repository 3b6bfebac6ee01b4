// Which options did the user give to one run of Megatron-LM? Values are checked as the getters ask for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "frameworks/imported.h"
#include "frameworks/megatron_options.h"
#include "frameworks/script_flags.h"

namespace rehearse {

class MegatronFlags {
 public:
  // InputError for options in an undecided branch, and for values that the option does not have. Where an
  // option is given twice, the last one counts.
  MegatronFlags(ScriptFlags found, std::string file, const ImportRequest& request);

  bool has(const std::string& name) const { return flags_.contains(name); }
  std::int64_t integer(const std::string& name) const;
  std::int64_t integer_or(const std::string& name, std::int64_t fallback) const;
  double number(const std::string& name) const;
  double number_or(const std::string& name, double fallback) const;
  std::string text(const std::string& name) const;
  std::string text_or(const std::string& name, const std::string& fallback) const;
  const std::vector<std::string>& values(const std::string& name) const;

  [[noreturn]] void fail(const std::string& name, const std::string& rule,
                         const std::string& nearest = "") const;

  const std::string& file() const { return file_; }
  bool is_over(const std::string& pointer) const { return over_.contains(pointer); }
  const std::vector<std::string>& notes() const { return notes_; }
  const std::vector<ImportedOption>& options() const { return options_; }
  // The text of a file that the user names, or that the script writes. Null where there is none.
  const std::string* text_of_file(const std::string& path) const;

 private:
  void take(ScriptFlag flag, std::vector<Violation>& violations);
  bool is_settled(ScriptFlag& flag, const MegatronOption& option, std::vector<Violation>& violations);
  void require_values(const ScriptFlag& flag, const MegatronOption& option,
                      std::vector<Violation>& violations);
  void list(ImportedOption option, bool is_key);
  void note_unknown();
  void add_undecided(std::vector<Violation>& violations) const;
  void write_over();

  // Options that depend on the same words; one message names them together.
  struct Undecided {
    std::string decides, place, condition;  // place and condition of the first of them
    std::vector<std::string> names;
  };

  std::string file_;
  SaidOverFile over_;
  std::vector<Undecided> undecided_;
  std::map<std::string, ScriptFlag> flags_;
  std::map<std::string, std::string> files_;
  std::vector<std::string> notes_;
  std::vector<ImportedOption> options_;
  std::map<std::pair<std::string, std::string>, std::size_t> listed_;  // by name and place
};

// The options that the network's shape lacks: empty where it is whole.
std::vector<std::string> missing_of_shape(const MegatronFlags& flags);

// The network as a written-out model (docs/validate.md). Notes name the parts that such a model cannot
// express.
Json megatron_model(const MegatronFlags& flags, std::vector<std::string>& notes);

// The padded vocabulary, with a note where it is assumed.
bool assumes_vocabulary(const MegatronFlags& flags);
std::int64_t megatron_vocabulary(const MegatronFlags& flags, std::vector<std::string>& notes);

// The scenario of these options.
Imported read_megatron(ScriptFlags found, const std::string& file, const ImportRequest& request);

}  // namespace rehearse
