// What is the result of one point of a sweep?
#pragma once

#include <cstdint>
#include <string>

#include "base/json_reader.h"
#include "base/read_record.h"

namespace rehearse {

enum class RowState : std::uint8_t {
  done,
  illegal,       // breaks a rule
  does_not_fit,  // the report shows the memory that it would need
  missing,       // no calibration
  failed         // an error of the program, or its process ended
};
std::string to_string(RowState state);  // "done", "illegal", "does not fit", "missing calibration", "failed"

struct Row {
  RowState state = RowState::done;
  std::string reason;  // empty when done
  Json report;         // rehearse.report/1; null where nothing ran
  FileDigests files = {};  // that were read for it
};

// JSON text for passing a row through a pipe.
std::string write_row(const Row& row);
Row read_row(const std::string& text);

}  // namespace rehearse
