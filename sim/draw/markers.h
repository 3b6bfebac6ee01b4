// How is a point of a series marked?
#pragma once

#include <string>

#include "draw/canvas.h"

namespace rehearse::svg {

// One shape and colour for each style: circle, square, triangle, diamond, ... Hollow unless `filled`.
void put_marker(Canvas& canvas, double x, double y, std::size_t style, bool filled, const std::string& hint);

// The same of one among hundreds: small, and others show through it.
void put_point(Canvas& canvas, double x, double y, std::size_t style, const std::string& hint);

// Of what was refused.
void put_cross(Canvas& canvas, double x, double y, const std::string& hint);

}  // namespace rehearse::svg
