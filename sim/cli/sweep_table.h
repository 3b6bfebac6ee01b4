// How does a sweep look on a terminal?
#pragma once

#include <string>

#include "sweep/store.h"

namespace rehearse {

// A line a row: the fields that vary, step time, tokens/s/GPU, MFU, bubble, all that lies on the fullest GPU,
// and why a row has none or does not count. The fastest row that fits is marked. InputError for rows of a
// version whose reports lack one of them.
std::string sweep_table(const Store& store, const Grid& grid);

}  // namespace rehearse
