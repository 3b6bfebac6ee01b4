// Which settings does a configuration in Python state, and which does it leave open?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// The key of an object that names the call that made it.
inline constexpr const char* kPythonMadeBy = "()";

// A value that the file does not decide. `path`: "training.seq_len"; "" of the whole configuration.
struct OpenSetting {
  std::string path, why;
  int line = 0;
};

// Decided settings alone; names of other modules are words. `lines`: by pointer.
struct PythonSettings {
  Json json;
  std::map<std::string, int> lines;
  std::vector<OpenSetting> open;
  std::vector<std::string> notes;
  std::vector<std::string> missing;    // parameters of the function without a value
  std::vector<std::string> unused;     // words of the command line that decide nothing
  std::string function;                // whose result they are
  std::vector<std::string> functions;  // of the file
  std::map<std::string, std::string> imports;
  std::vector<Json> calls;  // of other modules, which are handed functions of the file
};

// `function`: whose result the settings are; "" of the statements alone. `is_script`: blocks under
// "if __name__ == '__main__'" run. Values that the user hands in decide open names.
PythonSettings python_settings(const std::string& text, const std::string& file, const ShellInputs& inputs,
                               const std::string& function, bool is_script = false);

// From an answer of settings.py. InputError for the error that it names.
PythonSettings settings_of_answer(const Json& answer, const std::string& file);

// Of the function that the first argument names, or the only one of the file. InputError where it makes no
// object, or one that another module's function makes; `takes_base`: such an object is taken as well.
PythonSettings python_configuration(const std::string& text, const std::string& file,
                                    const ImportRequest& request, bool takes_base);

// The call that made the object: "Trainer.Config"; "" of other values.
std::string made_by(const Json& value);

// Whether the last word of a call names a class.
bool is_python_class(const std::string& name);

// Removes the names of the calls.
void drop_names_of_calls(Json& value);

// Moves open values out of a value, and writes names of other modules as words.
void take_open(Json& value, const std::string& path, std::vector<OpenSetting>& open);

// "not decided: training.seq_len (len(NODES)), line 9".
std::string note_on_open(const OpenSetting& open);
// The open value as a broken rule, with the way to decide it.
Violation violation_of_open(const OpenSetting& open, const std::string& file);
// The one place that says how else a run's configuration can be read.
std::string way_out_of_python();

}  // namespace rehearse
