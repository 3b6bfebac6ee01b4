// How is each kind of plot drawn?
#pragma once

#include "draw/chart.h"
#include "sweep/plot/plot.h"

namespace rehearse::plot {

// One field along the x axis; the others distinguish curves.
Chart make_curves(const Grid& grid, const PlotRows& rows, PlotKind kind);
std::string draw_heat(const Grid& grid, const PlotRows& rows);
std::string draw_front(const Grid& grid, const PlotRows& rows);
std::string draw_breakdown(const Grid& grid, const PlotRows& rows);
std::string draw_traffic(const Grid& grid, const PlotRows& rows);

// Rows for which no other row is both faster and smaller; by memory.
std::vector<std::size_t> front_of(const std::vector<PlotRow>& rows);

}  // namespace rehearse::plot
