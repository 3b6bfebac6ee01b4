// Where does output go, and may it be coloured? Data to stdout or a file, talk to stderr.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

enum class Colour { automatic, always, never };

// NO_COLOR, CLICOLOR_FORCE and a dumb terminal decide when the user did not.
bool use_colour(Colour colour);

// --color auto|always|never
VerbOption colour_option(Colour& colour);

// The same file, not to be taken for a name of the program's own data.
std::string as_path(const std::string& file);

// InputError where two of these are one file, so that what is written last is all that is kept, or one was
// read by this process: a run does not write over what it came from. Standard output, "-", takes one of them;
// "", devices and pipes are no files.
enum class Reads { refused, allowed };
void require_apart(const std::vector<std::string>& files, Reads reads = Reads::refused);

// Of an output that is read again while it grows: InputError for "-".
void require_file(const std::string& flag, const std::string& path);

// As write_file(), over a file that may have been read: of what goes on with what it holds.
void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Writes the whole file or throws std::runtime_error naming it: beside it first, and then in its place, so
// that neither a failed write nor a kill leaves half a file under its name. A file that is there keeps its
// mode, and a link leads to it still. "-" is standard output. InputError where it was read.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Before long work rather than after it: throws as write_file() would. "" is none. From here on "-" is meant
// for the file, and what is said to people goes to stderr. A verb that `prints` data has no room for it.
enum class Prints { talk, data };
void require_writable(const std::vector<std::string>& paths, Prints prints = Prints::talk);

// Where this process writes what will be `path`.
std::string partial_name(const std::string& path);

}  // namespace rehearse
