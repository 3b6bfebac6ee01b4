#include "cli/export.h"

#include <cstdio>

#include "cli/output.h"
#include "cli/verbs.h"

namespace rehearse {

Verb format_verb(const std::string& name, const std::string& help, ExportOptions& options) {
  Verb verb{name, help};
  verb.add_all(scenario_options(options.given));
  verb.add({{"-o", "--output"}, &options.output, "output; default: standard output", "FILE"});
  return verb;
}

void write_export(const ExportOptions& options, const std::string& text) {
  write_file(options.output.empty() ? "-" : options.output, [&](std::ostream& out) { out << text; });
}

Verb export_verb() {
  Verb verb{"export", "write a plan, its schedule or its run in the format of another tool"};
  verb.footer =
      "Examples:\n"
      "  rehearse export schedule scenarios/llama3-70b-512-h100.json -o schedule.csv\n"
      "  rehearse export schedule scenarios/zero-bubble-v-6b.json --form full\n"
      "  rehearse export megatron scenarios/llama3-70b-512-h100.json\n"
      "  rehearse export torchtitan scenarios/fsdp2-llama3-8b.json -o train.toml\n"
      "  rehearse export kineto scenarios/llama3-70b-512-h100.json -o traces\n"
      "  rehearse export perfetto scenarios/llama3-70b-512-h100.json -o run.pftrace\n"
      "  rehearse export chakra scenarios/zero-bubble-v-6b.json -o et";
  verb.verbs = export_plan_verbs();
  for (Verb& format : export_trace_verbs()) verb.verbs.push_back(std::move(format));
  return verb;
}

}  // namespace rehearse
