// How is a sweep shown on a terminal?
#pragma once

#include <string>

#include "sweep/store.h"

namespace rehearse {

// A line a row: the varied fields, step time, tokens/s/GPU, MFU, bubble, memory on the fullest GPU, and the
// reason where a row has no result or does not count. The fastest row that fits is marked. InputError for
// rows of a version whose reports lack one of them.
std::string sweep_table(const Store& store, const Grid& grid);

}  // namespace rehearse
