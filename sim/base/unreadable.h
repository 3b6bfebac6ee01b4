// Why can a file not be read, and which one was probably meant?
#pragma once

#include <string>

#include "base/error.h"

namespace rehearse {

// Of a path that why_unreadable() refuses because of `why`. `what` the file is to hold: "model", "" for any.
// Names like it in its folder stand as nearest; else files of that name that ship with the program.
Violation unreadable(const std::string& path, const std::string& why, const std::string& what = "");

// What why_unreadable() says of a path that leads nowhere, and of a folder.
inline constexpr const char* kNoSuchFile = "no such file";
inline constexpr const char* kIsFolder = "a folder";

}  // namespace rehearse
