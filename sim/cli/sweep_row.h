// What is the result of one scenario of a sweep?
#pragma once

#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "sweep/row.h"

namespace rehearse {

// Reads and runs it, and records the files it read. A refusal by the program is a state of the row, with the
// reason in the program's words. Failures are thrown.
Row evaluate_row(const ScenarioSource& source, Inputs& inputs);

}  // namespace rehearse
