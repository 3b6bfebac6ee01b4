// How do the rows of a sweep leave the program: as JSON lines, as CSV?
#pragma once

#include <ostream>

#include "sweep/store.h"

namespace rehearse {

// A line a row, by point: the fields that vary under their names, "state", "reason", "fastest" (true in one
// row, where any is done), then the report's keys. A report's key that is a field's name too is called
// "report_" + key.
void write_jsonl(std::ostream& out, const Store& store, const Grid& grid);

// The same as columns, nested keys joined with dots ("time_s.compute") and lists left out (RFC 4180). Every
// key of any row has a column, empty where a row has none.
void write_csv(std::ostream& out, const Store& store, const Grid& grid);

}  // namespace rehearse
