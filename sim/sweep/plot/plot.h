// Which picture shows the results of a sweep?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/plot/rows.h"

namespace rehearse::plot {

enum class PlotKind : std::uint8_t {
  bubble,          // against microbatches, with the closed form dashed
  step_time,       // against a swept number; so are throughput and memory
  throughput,      // tokens/s of a GPU
  memory,          // of the fullest rank
  strong_scaling,  // throughput of a GPU against their number, the global batch as it is
  weak_scaling,    // the same with a global batch that grows with them
  heatmap,         // throughput against two fields
  pareto,          // step time (GPU time of a token where batches or GPUs differ) against memory, with the front
                   // that no other plan beats in both
  breakdown,       // parts of the step time, a bar each
  traffic          // bytes that one GPU sends on each class of link, a bar each
};
std::string to_string(PlotKind kind);  // "step-time"
const std::vector<PlotKind>& plot_kinds();

// The kind that suits the varied fields:
// - GPUs: scaling;
// - global batch of a pipeline: bubble;
// - two numbers: heat map;
// - a number and at most one other field: curves;
// - a few rows without a number: bars;
// - otherwise: the front.
PlotKind choose_plot(const Grid& grid, const PlotRows& rows);

// InputError when nothing varies, or a field that the kind needs does not.
void require_fields(const Grid& grid, std::optional<PlotKind> kind);

// Every row is in the picture, drawn or counted in its note. InputError as above.
std::string draw_plot(const Grid& grid, const PlotRows& rows, std::optional<PlotKind> kind = {});

}  // namespace rehearse::plot
