// The parts of the verb calibrate.
#pragma once

namespace CLI {
class App;
}

namespace rehearse {

void add_calibrate_run(CLI::App& calibrate, int& exit_code);     // times kernels and messages
void add_calibrate_import(CLI::App& calibrate, int& exit_code);  // published tables and logs
void add_calibrate_show(CLI::App& calibrate, int& exit_code);    // show and diff

}  // namespace rehearse
