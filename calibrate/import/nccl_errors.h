// How large are prediction errors for tables inside the fit, outside it, and from clusters outside it?
#pragma once

#include <string>
#include <vector>

#include "calibrate/import/nccl_fit.h"

namespace rehearse::nccl {

// Data excluded from the fit of the model that predicts a table:
// - all: NCCL's own model alone;
// - nothing: all corrections, without measurements on the same system, which would be read back;
// - table: the table itself;
// - hardware: all tables of its hardware.
enum class LeftOut : std::uint8_t { all, nothing, table, hardware };

// Predicted over measured - 1 of one row.
struct RowError {
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = 0;
  double error = 0;
};

std::vector<RowError> errors(const Constants& constants, const std::vector<Sample>& samples,
                             LeftOut left_out);

// A text table: median absolute error by operation and size class for each of the three, and the number of
// rows.
std::string error_table(const Constants& constants, const std::vector<Sample>& samples);

}  // namespace rehearse::nccl
