// How is a report written for programs? As schema "rehearse.report/1": SI units, named in the keys.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "result/report.h"

namespace rehearse {

// Keys have a fixed order, so the same report gives the same bytes. `version` is the program's.
nlohmann::ordered_json report_json(const Report& report, const std::string& version);

// report_json as text: two spaces of indent, a newline at the end; invalid UTF-8 in names is replaced.
std::string write_report_json(const Report& report, const std::string& version);

// [{"option", "counted", "changes"}]
nlohmann::ordered_json omitted_json(const std::vector<OmittedEffect>& effects);

}  // namespace rehearse
