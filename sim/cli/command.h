// Which command is the program running? Pages show it.
#pragma once

#include <string>

namespace rehearse {

// Kept for the lifetime of the program; called once, first.
void remember_command(int argc, char** argv);

// "rehearse simulate a.json --tp 8": words that a shell would split are quoted.
const std::string& command_line();

}  // namespace rehearse
