// How is a point of a series marked?
#pragma once

#include <string>

#include "draw/canvas.h"

namespace rehearse::svg {

// One shape and colour for each style: circle, square, triangle, diamond, ... Hollow unless `filled`.
void put_marker(Canvas& canvas, double x, double y, std::size_t style, bool filled, const std::string& hint);

// A point among hundreds: small and translucent.
void put_point(Canvas& canvas, double x, double y, std::size_t style, const std::string& hint);

// Marks a refused point.
void put_cross(Canvas& canvas, double x, double y, const std::string& hint);

}  // namespace rehearse::svg
