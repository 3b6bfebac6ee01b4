// How does a picture become a PNG? With rsvg-convert, a program of librsvg.
#pragma once

#include <string>

namespace rehearse {

// std::runtime_error where there is no rsvg-convert.
void require_png_writer();

// Twice the size of the picture. std::runtime_error when it cannot be written; no partial file is left.
void write_png(const std::string& path, const std::string& svg);

}  // namespace rehearse
