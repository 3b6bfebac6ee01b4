// Where does output go, and may it be coloured? Data to stdout or a file, talk to stderr.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace rehearse {

enum class Colour { automatic, always, never };

// NO_COLOR, CLICOLOR_FORCE and a dumb terminal decide when the user did not.
bool use_colour(Colour colour);

// --color auto|always|never
void add_colour_flag(CLI::App& verb, Colour& colour);

// Writes the whole file or throws std::runtime_error naming it: beside it first, and then in its place, so
// that neither a failed write nor a kill leaves half a file under its name.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Before long work rather than after it: throws as write_file() would. "" and "-" are none.
void require_writable(const std::vector<std::string>& paths);

// Where this process writes what will be `path`.
std::string partial_name(const std::string& path);

}  // namespace rehearse
