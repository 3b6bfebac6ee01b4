// Which models, clusters, profiles, schedules and frameworks are known by name, with which properties?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"

namespace rehearse {

struct ListedName {
  std::vector<std::string> cells;  // by column
  Json json;                       // the same figures in SI units, with the unit in each key
};

struct NameList {
  std::string kind;  // "models"
  std::string what;
  std::vector<std::string> columns;
  std::vector<std::string> (*names)();
  std::vector<ListedName> (*entries)();  // reads every file of the kind
};
const std::vector<NameList>& name_lists();

}  // namespace rehearse
