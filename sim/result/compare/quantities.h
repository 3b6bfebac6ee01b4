// Which figures does a report hold, each under the name by which two reports are compared?
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

// Of a "rehearse.report/1": rates, bubble, every part of time_s, every entry of communication as
// "communication.KIND.OP.GROUP_SIZE.*", memory's peak and every pipeline rank of it as
// "memory.rankN.*". InputError when a
// figure is missing or no number.
std::vector<Quantity> report_quantities(const JsonReader& report);

// "memory.rankN.allocated_bytes": the most that the ranks of pipeline rank N held for one step. In a
// predicted report that is activations and logits; in an executed one, "execution" says what was measured.
std::vector<Quantity> allocated_quantities(const JsonReader& report);

// Of the first replica of each pipeline rank: "bubble_fraction.rankN", and over them for each kind of op
// "ops.KIND.count" and "ops.KIND.mean_s"; parts of an op count as one.
std::vector<Quantity> timeline_quantities(const Timeline& timeline, const Schedule& schedule);

}  // namespace rehearse
