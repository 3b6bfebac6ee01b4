#include "cli/import_answer.h"

#include "base/error.h"
#include "result/report_json.h"

namespace rehearse {

Json import_answer(const std::string& kind, const Json& scenario, const Imported& imported,
                   const Coverage& coverage) {
  Json options = Json::array();
  for (const ImportedOption& option : imported.options) {
    Json row = {{"name", option.name},
                {"value", option.value},
                {"place", option.place},
                {"class", to_string(option.fate)},
                {"effect", option.effect}};
    if (!option.nearest.empty()) row["nearest"] = option.nearest;
    options.push_back(std::move(row));
  }
  return {{"kind", kind},
          {"scenario", scenario},
          {"options", options},
          {"coverage", {{"read", coverage.read}, {"assumed", coverage.assumed}, {"of", coverage.all()}}},
          {"omitted_effects", omitted_json(imported.omitted)},
          {"notes", imported.notes}};
}

void require_known(const Imported& imported, const std::string& file) {
  std::vector<Violation> violations;
  for (const ImportedOption& option : imported.options)
    if (option.fate == OptionFate::unknown)
      violations.push_back({file, option.place.empty() ? option.name : option.place + ": " + option.name,
                            "is an unknown option, which --strict refuses", "found " + option.name,
                            option.nearest});
  if (!violations.empty()) throw InputError(std::move(violations));
}

}  // namespace rehearse
