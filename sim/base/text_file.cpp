#include "base/text_file.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"

namespace rehearse {

std::string read_text_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code error;
  std::stringstream text;
  const bool readable = in && !std::filesystem::is_directory(path, error);
  // Nothing read from an empty file sets failbit on `text`, not on `in`.
  if (readable) text << in.rdbuf();
  if (!readable || in.bad())
    throw InputError({path, "", "cannot read this file", "", "the path of a file that may be read"});
  return text.str();
}

}  // namespace rehearse
