// Where does output go, and may it be coloured? Data to stdout or a file, talk to stderr.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>
#include <string>

namespace rehearse {

enum class Colour { automatic, always, never };

// NO_COLOR, CLICOLOR_FORCE and a dumb terminal decide when the user did not.
bool use_colour(Colour colour);

// --color auto|always|never
void add_colour_flag(CLI::App& verb, Colour& colour);

// Writes the whole file or throws std::runtime_error naming it; a failed write leaves no partial file behind.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace rehearse
