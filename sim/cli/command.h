// Which command is the program running? Pages say how they were made.
#pragma once

#include <string>

namespace rehearse {

// Kept for the life of the program; called once, first.
void remember_command(int argc, char** argv);

// "rehearse simulate a.json --tp 8": words that a shell would divide are quoted.
const std::string& command_line();

}  // namespace rehearse
