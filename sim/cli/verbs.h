// What can the program be asked to do? Each verb adds itself to the parser and runs in a file of its own.
#pragma once

namespace CLI {
class App;
}

namespace rehearse {

// Exit codes, as promised to scripts.
enum ExitCode {
  kDone = 0,
  kFailure = 1,
  kInvalidInput = 2,
  kDoesNotFit = 3,
  kMissing = 4,
  kGateFailed = 5,
  kInterrupted = 130
};

// Each sets `exit_code` when its verb runs.
void add_simulate(CLI::App& program, int& exit_code);
void add_check(CLI::App& program, int& exit_code);
void add_execute(CLI::App& program, int& exit_code);
void add_compare(CLI::App& program, int& exit_code);
void add_export(CLI::App& program, int& exit_code);
void add_import(CLI::App& program, int& exit_code);
void add_init(CLI::App& program, int& exit_code);
void add_explain(CLI::App& program, int& exit_code);
void add_memory(CLI::App& program, int& exit_code);
void add_plan(CLI::App& program, int& exit_code);
void add_studio(CLI::App& program, int& exit_code);
void add_sweep(CLI::App& program, int& exit_code);
void add_topo(CLI::App& program, int& exit_code);
void add_goodput(CLI::App& program, int& exit_code);
void add_validate(CLI::App& program, int& exit_code);
void add_calibrate(CLI::App& program, int& exit_code);
void add_doctor(CLI::App& program, int& exit_code);
void add_completion(CLI::App& program, int& exit_code);
void add_list(CLI::App& program, int& exit_code);
void add_help(CLI::App& program, int& exit_code);

// "rehearse 0.1.0 (SimGrid 3.32.0, g++ 12.2.0)", or the same as JSON.
std::string version_line();
std::string version_json();

}  // namespace rehearse
