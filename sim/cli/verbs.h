// Which verbs does the program have? Each verb describes itself in a file of its own.
#pragma once

#include <string>

#include "base/exit_code.h"
#include "cli/verb.h"

namespace rehearse {

Verb simulate_verb();
Verb check_verb();
Verb execute_verb();
Verb compare_verb();
Verb export_verb();
Verb import_verb();
Verb init_verb();
Verb explain_verb();
Verb memory_verb();
Verb plan_verb();
Verb studio_verb();
Verb sweep_verb();
Verb topo_verb();
Verb goodput_verb();
Verb validate_verb();
Verb calibrate_verb();
Verb doctor_verb();
Verb completion_verb();
Verb list_verb();
Verb help_verb();

// "rehearse 0.1.0 (SimGrid 3.32.0, g++ 12.2.0)", or the same as JSON.
std::string version_line();
std::string version_json();

}  // namespace rehearse
