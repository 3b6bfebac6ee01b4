// The parts of the verb calibrate.
#pragma once

#include "cli/verb.h"

namespace rehearse {

Verb calibrate_run_verb();     // calibrate itself: times kernels and messages
Verb calibrate_import_verb();  // published tables and logs
Verb calibrate_show_verb();
Verb calibrate_diff_verb();

}  // namespace rehearse
