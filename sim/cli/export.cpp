#include "cli/export.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/output.h"
#include "cli/verbs.h"

namespace rehearse {

CLI::App* add_format(CLI::App& verb, const std::string& name, const std::string& help,
                     const std::shared_ptr<ExportOptions>& options) {
  CLI::App* format = verb.add_subcommand(name, help);
  add_scenario_flags(*format, options->given);
  format->add_option("-o,--output", options->output, "output; default: standard output")->option_text("FILE");
  return format;
}

void write_export(const ExportOptions& options, const std::string& text) {
  write_file(options.output.empty() ? "-" : options.output, [&](std::ostream& out) { out << text; });
}

void add_export(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("export", "write a plan, its schedule or its run in the format of another tool");
  verb->require_subcommand(1);
  add_export_plans(*verb, exit_code);
  add_export_traces(*verb, exit_code);
  verb->footer(
      "Examples:\n"
      "  rehearse export schedule scenarios/llama3-70b-512-h100.json -o schedule.csv\n"
      "  rehearse export schedule scenarios/zero-bubble-v-6b.json --form full\n"
      "  rehearse export megatron scenarios/llama3-70b-512-h100.json\n"
      "  rehearse export torchtitan scenarios/fsdp2-llama3-8b.json -o train.toml\n"
      "  rehearse export kineto scenarios/llama3-70b-512-h100.json -o traces\n"
      "  rehearse export perfetto scenarios/llama3-70b-512-h100.json -o run.pftrace\n"
      "  rehearse export chakra scenarios/zero-bubble-v-6b.json -o et");
}

}  // namespace rehearse
