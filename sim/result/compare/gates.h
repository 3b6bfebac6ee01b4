// Which errors are too large? The gates of --fail-above.
#pragma once

#include <string>
#include <vector>

#include "result/compare/compare.h"

namespace rehearse {

struct Gate {
  std::string name;  // a quantity, or a prefix of its name up to a '.' or '_': "bubble", "time_s"
  double most = 0;   // of |error|: 0.05
};

// "5%" (of step_time_s), or "step_time_s=5%,bubble=10%". InputError for anything else.
std::vector<Gate> parse_gates(const std::string& text);

// One sentence for each pair beyond its gate. A pair without an error (no value to compare with) is beyond
// any gate. A pair that cannot be compared passes. InputError, with the nearest name, when a gate matches no
// compared quantity.
std::vector<std::string> beyond_gates(const ReportComparison& comparison, const std::vector<Gate>& gates);

}  // namespace rehearse
