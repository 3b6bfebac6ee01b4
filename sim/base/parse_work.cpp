#include "base/parse_work.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rehearse {

namespace {

std::string place(std::size_t line) {
  return line == 0 ? "" : fmt::format("line {}", line);
}

}  // namespace

void ParseWork::fail_of_depth(std::size_t line) const {
  throw InputError({file_, place(line), "nests too deep: lists and maps stand inside each other",
                    fmt::format("more than {} levels", kMaxNesting),
                    fmt::format("a file of at most {} levels", kMaxNesting)});
}

void ParseWork::fail_of_work(std::size_t line) const {
  throw InputError({file_, place(line), "holds too many values, with aliases and merges written out",
                    fmt::format("more work than that of {} values", most_), "a smaller file"});
}

}  // namespace rehearse
