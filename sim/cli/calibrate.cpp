#include "cli/calibrate.h"

#include <CLI/CLI.hpp>

#include "cli/verbs.h"

namespace rehearse {

void add_calibrate(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("calibrate", "measure the kernels and messages of a device into a profile");
  verb->require_subcommand(0, 1);
  add_calibrate_run(*verb, exit_code);
  add_calibrate_import(*verb, exit_code);
  add_calibrate_show(*verb, exit_code);
}

}  // namespace rehearse
