// What does one scenario of a sweep come to?
#pragma once

#include "scenario/flags.h"
#include "scenario/inputs.h"
#include "sweep/row.h"

namespace rehearse {

// Reads and runs it, and records the files it read. What the program refuses is a state of the row, with the
// reason as the program words it; what fails is thrown.
Row evaluate_row(const ScenarioSource& source, Inputs& inputs);

}  // namespace rehearse
