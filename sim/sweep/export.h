// How are the rows of a sweep written as JSON lines or CSV?
#pragma once

#include <ostream>

#include "sweep/store.h"

namespace rehearse {

// A line a row, by point: the varied fields under their names, "state", "reason", "fastest" (true in one row,
// if any is done), then the report's keys. A report's key that equals a field's name becomes "report_" + key.
void write_jsonl(std::ostream& out, const Store& store, const Grid& grid);

// The same as columns, with nested keys joined by dots ("time_s.compute") and without lists (RFC 4180). Every
// key of any row has a column, empty where a row has no value.
void write_csv(std::ostream& out, const Store& store, const Grid& grid);

}  // namespace rehearse
