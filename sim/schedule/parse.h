// How does the name of an op become the op again, for readers of texts and CSV files?
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include "schedule/schedule.h"

namespace rehearse {

// Position of a token in its file, for errors.
struct TokenPlace {
  std::string file;
  std::string pointer;  // "row 2, cell 5"
};

// InputError at `place`.
[[noreturn]] void reject_token(const TokenPlace& place, std::string rule, std::string_view token,
                               std::string nearest = {});

// "<stage><kind>[<microbatch>]" and, when `extended`, ".<part>/<parts>" and "@<stream>". InputError for
// anything else, trailing characters included.
Op parse_op(std::string_view token, const TokenPlace& place, bool extended);

// Sets stages and microbatches from the ops, and pp from the lists. InputError when a stage or a microbatch
// is missing between 0 and the largest.
void set_size(Schedule& schedule, const std::string& file);

}  // namespace rehearse
