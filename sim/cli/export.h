// The parts of the verb export.
#pragma once

#include <memory>
#include <string>

#include "cli/flags.h"

namespace CLI {
class App;
}

namespace rehearse {

struct ExportOptions {
  GivenFlags given;
  std::string output;  // "": standard output
};

// A format as a subcommand, with every scenario flag and -o.
CLI::App* add_format(CLI::App& verb, const std::string& name, const std::string& help,
                     const std::shared_ptr<ExportOptions>& options);

// To the file that -o names, or standard output.
void write_export(const ExportOptions& options, const std::string& text);

void add_export_plans(CLI::App& verb, int& exit_code);   // schedule, megatron, deepspeed, torchtitan
void add_export_traces(CLI::App& verb, int& exit_code);  // kineto, perfetto, chakra

}  // namespace rehearse
