// How well are tables predicted that the fit has seen, has not seen, or whose whole cluster it has not seen?
#pragma once

#include <string>
#include <vector>

#include "calibrate/import/nccl_fit.h"

namespace rehearse::nccl {

// What was kept from the fit of the model that predicts a table: all (NCCL's belief alone), nothing (the
// corrections, without what was measured on the very system, which would be read back), the table, or all of
// its hardware.
enum class LeftOut : std::uint8_t { all, nothing, table, hardware };

// Predicted over measured - 1 of one row.
struct RowError {
  CollectiveOp op = CollectiveOp::all_reduce;
  double bytes = 0;
  double error = 0;
};

std::vector<RowError> errors(const Constants& constants, const std::vector<Sample>& samples,
                             LeftOut left_out);

// A text table: median size of the error by operation and size class for each of the three, and the rows.
std::string error_table(const Constants& constants, const std::vector<Sample>& samples);

}  // namespace rehearse::nccl
