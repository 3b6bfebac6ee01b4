// A plan that another program's YAML describes: each key that is asked for counts as read.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "frameworks/imported.h"
#include "frameworks/yaml_text.h"

namespace rehearse {

class PlanYaml {
 public:
  // `yaml`, `file` and `request` outlive it.
  PlanYaml(const YamlText& yaml, const std::string& file, const ImportRequest& request);

  const Json* find(const std::string& path);  // null where it is absent or null
  // `pointer`: of the scenario's field, which decides in its place where the command line gives it.
  std::int64_t integer(const std::string& path, std::int64_t fallback, const std::string& pointer = "");
  double number(const std::string& path, double fallback);
  bool on(const std::string& path, bool fallback = false);
  std::string text(const std::string& path);  // "" where it is absent
  std::string place(const std::string& path) const;
  void note(const std::string& path, const std::string& text);
  // Where the file has another value than the one that is counted: notes that it is ignored, and the effect.
  void ignore_unless(const std::string& path, const Json& counted, const std::string& effect);
  void write_gpus(std::int64_t gpus);  // unless the command line gives them

  // Every key of the file, with what became of it. `free`: by path, or by its last step.
  Imported finish(const std::set<std::string>& free);

  Imported imported;
  std::vector<Violation> violations;

 private:
  int line(const std::string& path) const;
  void list(const Json& section, const std::string& before, const std::set<std::string>& free);

  const YamlText& yaml_;
  const std::string& file_;
  const ImportRequest& request_;
  std::set<std::string> read_;
  std::vector<std::string> unknown_;
};

}  // namespace rehearse
