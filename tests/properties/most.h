// How far did a figure go over all runs of this process?
#pragma once

#include <string>

namespace rehearse::properties {

// Keeps the greatest value, which is printed as a percentage when the process ends.
void note_most(const std::string& what, double value);

}  // namespace rehearse::properties
