// Where does output go, and may it be coloured? Data goes to stdout or a file, messages to stderr.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "cli/verb.h"

namespace rehearse {

enum class Colour { automatic, always, never };

// NO_COLOR, CLICOLOR_FORCE and a dumb terminal decide unless the user did.
bool use_colour(Colour colour);

// --color auto|always|never
VerbOption colour_option(Colour& colour);

// The same file, in a form that is not a name of the program's own data.
std::string as_path(const std::string& file);

// InputError where two of these are one file, as only the last would remain. InputError also where this
// process has read one of them: a run does not overwrite its input. Only one may be standard output, "-". "",
// devices and pipes are not files.
enum class Reads { refused, allowed };
void require_apart(const std::vector<std::string>& files, Reads reads = Reads::refused);

// For an output that is read again while it grows: InputError for "-".
void require_file(const std::string& flag, const std::string& path);

// As write_file(), but the file may have been read: for data that continues the file's contents.
void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Writes the whole file or throws std::runtime_error naming it. It writes to a temporary file and renames it,
// so that neither a failed write nor a kill leaves half a file. An existing file keeps its mode, and a link
// keeps its target. "-" is standard output. InputError where the file was read.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& write);

// Checks before long work: throws as write_file() would. "" is no file. After this, "-" is reserved for the
// file, and messages go to stderr. A verb that `prints` data cannot also write a file to standard output.
enum class Prints { talk, data };
void require_writable(const std::vector<std::string>& paths, Prints prints = Prints::talk);

// The file that this process writes before renaming it to `path`.
std::string partial_name(const std::string& path);

}  // namespace rehearse
