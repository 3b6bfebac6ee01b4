// How is a sweep shown as a page that opens anywhere, without a network?
#pragma once

#include <optional>
#include <string>

#include "sweep/plot/plot.h"

namespace rehearse::plot {

// The picture, curves along a field that the reader chooses, and every row. The same rows give the same
// bytes.
std::string write_sweep_page(const Grid& grid, const PlotRows& rows, std::optional<PlotKind> kind,
                             const std::string& command);

}  // namespace rehearse::plot
