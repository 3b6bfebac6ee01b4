// How much memory of each GPU is to stay free?
#pragma once

#include "base/json_reader.h"
#include "result/memory/verdict.h"

namespace rehearse {

// The scenario's "headroom": a percentage of the GPU's memory or bytes with a unit; 5 % where it is left out.
// InputError for what is neither, or 100 % and more.
Headroom read_headroom(const JsonReader& scenario);

}  // namespace rehearse
