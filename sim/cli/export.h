// The parts of the verb export.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"
#include "scenario/flags.h"

namespace rehearse {

struct ExportOptions {
  GivenFlags given;
  std::string output;  // "": standard output
};

// The verb of a format, with every scenario flag and -o.
Verb format_verb(const std::string& name, const std::string& help, ExportOptions& options);

// Writes to the file of -o, or to standard output.
void write_export(const ExportOptions& options, const std::string& text);

std::vector<Verb> export_plan_verbs();   // schedule, megatron, deepspeed, torchtitan
std::vector<Verb> export_trace_verbs();  // kineto, perfetto, chakra

}  // namespace rehearse
