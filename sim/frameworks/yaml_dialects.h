// Which arguments of Megatron-LM does another program's YAML name, and by which keys? The tables are
// yaml_dialects.json.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

// Keys are named by their path, "model/optim/name", or by the last step of it.
struct YamlDialect {
  std::string name, what;
  std::set<std::string> free;                                        // keys and sections
  std::map<std::string, std::string> rename;                         // to arguments of Megatron-LM
  std::map<std::string, std::map<std::string, std::string>> values;  // of arguments, to Megatron-LM's
  std::map<std::string, std::string> ignored;                        // with their effect
  // Of the answer, above 10 %, by ignored and counted keys (base/omitted_effect.h).
  std::map<std::string, std::string> changes;
  std::set<std::string> environment;  // maps of environment variables
  // Keys that are no arguments: the counted value, and the effect of another value.
  std::map<std::string, std::pair<Json, std::string>> counted;
  // Names of precisions, with the arguments that they set in every section.
  std::map<std::string, std::map<std::string, std::string>> precisions;
  std::map<std::string, std::string> defaults;  // of arguments, where they are not Megatron-LM's
  std::string defaults_of;                      // the files that hold them, as a note names them
  std::string unnamed;  // a note on options that a file without the network's shape does not name
};

const YamlDialect& yaml_dialect(const std::string& name);

// The name of the dialect to which the file's sections belong; "" where they belong to none.
std::string dialect_of(const Json& yaml);

Imported import_yaml_dialect(const YamlDialect& dialect, const YamlText& yaml, const std::string& file,
                             const ImportRequest& request);

}  // namespace rehearse
