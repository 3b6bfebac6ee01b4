#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

namespace rehearse {

bool use_colour(Colour colour) {
  if (colour != Colour::automatic) return colour == Colour::always;
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
  };
  if (set("NO_COLOR")) return false;
  if (set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  if (terminal == nullptr || std::strcmp(terminal, "dumb") == 0) return false;
  return isatty(STDOUT_FILENO) == 1;
}

void add_colour_flag(CLI::App& verb, Colour& colour) {
  static const std::map<std::string, Colour> names = {
      {"auto", Colour::automatic}, {"always", Colour::always}, {"never", Colour::never}};
  verb.add_option("--color", colour, "colour on the terminal")
      ->transform(CLI::CheckedTransformer(names))
      ->option_text("auto|always|never");
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  // A device or pipe is written as it stands: renaming a file over it would replace it.
  std::error_code ignored_status;
  const bool special = std::filesystem::exists(path, ignored_status) &&
                       !std::filesystem::is_regular_file(path, ignored_status);
  const std::string partial = special ? path : path + ".partial";
  const auto fail = [&](const std::string& why) {
    std::error_code ignored;
    if (!special) std::filesystem::remove(partial, ignored);
    throw std::runtime_error(fmt::format("cannot write {}: {}", path, why));
  };
  std::ofstream out(partial, std::ios::binary);
  if (!out) fail(std::strerror(errno));
  write(out);
  out.close();
  if (!out) fail(std::strerror(errno));
  if (special) return;
  std::error_code error;
  std::filesystem::rename(partial, path, error);
  if (error) fail(error.message());
}

}  // namespace rehearse
