// Which scenarios does a command line with lists describe?
#pragma once

#include <string>
#include <vector>

#include "scenario/flags.h"
#include "sweep/grid.h"

namespace rehearse {

struct Swept {
  ScenarioSource base;  // the file and every flag with one value
  Grid grid;            // the flags with several values, in the order of --help, then the fields of --set
};

// InputError for a value of the wrong kind, a field without values or one that is given twice.
Swept read_swept(const GivenFlags& given);

ScenarioSource source_at(const Swept& swept, Point point);

// The identity of a sweep: scenario and fields. Each row's inputs decide whether it is still valid.
Json identity_of(const Swept& swept);

}  // namespace rehearse
