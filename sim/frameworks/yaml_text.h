// Which JSON values does a YAML file hold, and in which lines?
#pragma once

#include <map>
#include <string>

#include "base/json_reader.h"

namespace rehearse {

struct YamlText {
  Json json;
  std::map<std::string, int> lines;  // from 1, by JSON pointer

  int line(const std::string& pointer) const;  // 0 where it has none
};

// Reads the only document. Plain words are read as YAML 1.1 readers of Python do: yes and off are booleans,
// 1_000 and 1e-5 numbers. Merge keys and aliases are written out. "${a.b}" becomes the value at that path
// where the file has one. InputError, with line and column, for a text that is not YAML. InputError also for
// a second document, for a key with two values, and for a file that becomes larger than any configuration.
YamlText read_yaml(const std::string& text, const std::string& file);

// "${a.b}" becomes the value at that path, as read_yaml() does it.
void write_out_paths(Json& json, const std::string& file);

// "${oc.env:NAME,default}" becomes the variable that is handed in, else the default.
void write_out_variables(Json& json, const std::map<std::string, std::string>& variables);

// "a.b.c" of maps; null where one of them is absent.
const Json* at_path(const Json& root, const std::string& path);

// A plain word.
Json plain_yaml(const std::string& word);

// Sets the value at "a.b.c". Values on the way that are no maps become maps.
void set_at_path(Json& json, const std::string& path, Json value);

// A key as it stands in a pointer.
std::string pointer_step(const std::string& key);

}  // namespace rehearse
