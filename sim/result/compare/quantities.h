// Which figures does a report have, and under which names are they compared?
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "result/timeline.h"

namespace rehearse {

enum class Measure { seconds, bytes, share, count };

struct Quantity {
  std::string name;  // its path in the report: "bubble_fraction.mean", "time_s.compute"
  Measure measure = Measure::count;
  double value = 0;
};

// Quantities of a "rehearse.report/1":
// - rates, bubble, every component of time_s;
// - every entry of communication as "communication.KIND.OP.GROUP_SIZE.*";
// - memory's peak and every pipeline rank of it as "memory.rankN.*".
// InputError when a figure is missing or not a number.
std::vector<Quantity> report_quantities(const JsonReader& report);

// "memory.rankN.allocated_bytes": the peak over the ranks of pipeline rank N in one step. In a predicted
// report it counts activations and logits; in an executed one, "execution" says what was measured.
std::vector<Quantity> allocated_quantities(const JsonReader& report);

// For the first replica of each pipeline rank: "bubble_fraction.rankN". Over these ranks, for each kind of
// op: "ops.KIND.count" and "ops.KIND.mean_s"; parts of an op count as one.
std::vector<Quantity> timeline_quantities(const Timeline& timeline, const Schedule& schedule);

}  // namespace rehearse
