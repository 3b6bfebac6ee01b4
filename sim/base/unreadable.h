// Why can a file not be read, and which one was probably meant?
#pragma once

#include <string>

#include "base/error.h"

namespace rehearse {

// For a path that why_unreadable() refuses with the reason `why`. `what` is the expected content: "model", ""
// for any. The nearest names are similar ones in its folder, else files of that name that ship with the
// program.
Violation unreadable(const std::string& path, const std::string& why, const std::string& what = "");

// why_unreadable()'s reasons for a missing path and for a folder.
inline constexpr const char* kNoSuchFile = "no such file";
inline constexpr const char* kIsFolder = "a folder";

}  // namespace rehearse
