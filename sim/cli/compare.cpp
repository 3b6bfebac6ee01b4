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

Verb compare_verb() {
  const auto options = std::make_shared<CompareOptions>();
  Verb verb{"compare", "two reports or traces side by side, with errors"};
  verb.add({.names = {"a"},
            .target = &options->a,
            .help = "report or trace: the prediction, or one plan",
            .value = "A.json",
            .required = true});
  verb.add({{"b"}, &options->b, "report or trace: the executed run, or another plan", "B.json"});
  verb.add({{"more"}, &options->more, "with --svg: more traces, drawn below the first two", "MORE.json..."});
  verb.add({{"--log"}, &options->log, "instead of B: the log of a run, of " + logging_frameworks(), "FILE"});
  verb.add({.names = {"--warmup"},
            .target = &options->warmup,
            .help = "logged warm-up steps to skip; default: the first tenth",
            .value = "N",
            .bounds = {{0, 1'000'000'000}},
            .needs = "--log"});
  verb.add_all(comparison_options(options->show));
  verb.footer =
      "Errors are A / B - 1. A quantity is named as in the report, a gate by that name or its beginning.\n"
      "Examples:\n"
      "  rehearse compare predicted.json executed.json --fail-above 5%\n"
      "  rehearse compare predicted.json executed.json --fail-above step_time_s=5%,bubble=10% --json\n"
      "  rehearse compare predicted-trace.json executed-trace.json --svg both.svg --trace both.json\n"
      "  rehearse compare gpipe.json 1f1b.json zb-h1.json --svg schedules.svg\n"
      "  rehearse compare predicted.json --log train.log --fail-above 15%";
  verb.run = [options] { return compare(*options); };
  return verb;
}

}  // namespace rehearse
