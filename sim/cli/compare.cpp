#include <CLI/CLI.hpp>
#include <memory>

#include "cli/compare_log.h"
#include "cli/show_comparison.h"
#include "cli/verbs.h"
#include "frameworks/log_words.h"

namespace rehearse {

namespace {

struct CompareOptions {
  std::string a, b, log;
  std::vector<std::string> more;
  int warmup = -1;
  ComparisonOptions show;
};

int compare(const CompareOptions& options) {
  if (options.b.empty() == options.log.empty())
    throw InputError({"command line", "", "a report is compared with one other, or with --log FILE",
                      options.b.empty() ? "neither given" : "both given", ""});
  const Side a = read_side(options.a);
  std::vector<Side> more;
  for (const std::string& file : options.more) more.push_back(read_side(file));
  if (options.log.empty()) return show_comparison(options.show, a, read_side(options.b), more);
  LogSide log = read_log_side(options.log, options.warmup, a);
  return show_common(options.show, a, std::move(log.run), log.of_other_work);
}

}  // namespace

void add_compare(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("compare", "two reports or traces side by side, with errors");
  const auto options = std::make_shared<CompareOptions>();
  verb->add_option("a", options->a, "report or trace: the prediction, or one plan")
      ->option_text("A.json")
      ->required();
  verb->add_option("b", options->b, "report or trace: the executed run, or another plan")
      ->option_text("B.json");
  verb->add_option("more", options->more, "with --svg: more traces, drawn below the first two")
      ->option_text("MORE.json...");
  CLI::Option* log =
      verb->add_option("--log", options->log, "instead of B: the log of a run, of " + logging_frameworks())
          ->option_text("FILE");
  verb->add_option("--warmup", options->warmup, "logged warm-up steps to skip; default: the first tenth")
      ->check(CLI::Range(0, 1000000000))
      ->option_text("N")
      ->needs(log);
  add_comparison_flags(*verb, options->show);
  verb->footer(
      "Errors are A / B - 1. A quantity is named as in the report, a gate by that name or its beginning.\n"
      "Examples:\n"
      "  rehearse compare predicted.json executed.json --fail-above 5%\n"
      "  rehearse compare predicted.json executed.json --fail-above step_time_s=5%,bubble=10% --json\n"
      "  rehearse compare predicted-trace.json executed-trace.json --svg both.svg --trace both.json\n"
      "  rehearse compare gpipe.json 1f1b.json zb-h1.json --svg schedules.svg\n"
      "  rehearse compare predicted.json --log train.log --fail-above 15%");
  verb->callback([options, &exit_code] { exit_code = compare(*options); });
}

}  // namespace rehearse
