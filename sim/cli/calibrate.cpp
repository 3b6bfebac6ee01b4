#include "cli/calibrate.h"

#include "cli/verbs.h"

namespace rehearse {

Verb calibrate_verb() {
  Verb verb = calibrate_run_verb();
  verb.verbs = {calibrate_import_verb(), calibrate_show_verb(), calibrate_diff_verb()};
  return verb;
}

}  // namespace rehearse
