// Which profile results for a GPU that differs from a measured one in known rates?
#pragma once

#include "base/json_reader.h"

namespace rehearse {

// `base` converted to the GPU of the recipe {name, how, like, gpu, reached, note}. "reached" gives, for each
// precision kept, the best GEMM measured on the base's GPU and on this one, FLOP/s. Each GEMM keeps its share
// of the roofline of these rates and the memory bandwidths (Williams, Waterman, Patterson 2009). Streams
// scale with the memory bandwidth, attention with the 16-bit rate. Launches, links and collectives are
// unchanged. InputError for a recipe that breaks a rule.
Json carry_over(const JsonReader& recipe, const Json& base);

}  // namespace rehearse
