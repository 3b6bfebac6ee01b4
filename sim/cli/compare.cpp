#include <memory>

#include "cli/show_comparison.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

struct CompareOptions {
  std::string a, b;
  ComparisonOptions show;
};

}  // namespace

void add_compare(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("compare", "two reports or traces side by side, with errors");
  const auto options = std::make_shared<CompareOptions>();
  verb->add_option("a", options->a, "report or trace: the prediction, or one plan")
      ->option_text("A.json")
      ->required();
  verb->add_option("b", options->b, "report or trace: what was executed, or another plan")
      ->option_text("B.json")
      ->required();
  add_comparison_flags(*verb, options->show);
  verb->footer(
      "Errors are A / B - 1. A quantity is named as in the report, a gate by that name or its beginning.\n"
      "Examples:\n"
      "  rehearse compare predicted.json executed.json --fail-above 5%\n"
      "  rehearse compare predicted.json executed.json --fail-above step_time_s=5%,bubble=10% --json\n"
      "  rehearse compare predicted-trace.json executed-trace.json --svg both.svg --trace both.json");
  verb->callback([options, &exit_code] {
    const Side a = read_side(options->a);
    exit_code = show_comparison(options->show, a, read_side(options->b));
  });
}

}  // namespace rehearse
