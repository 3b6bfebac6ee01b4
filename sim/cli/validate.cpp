#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "cli/validate_runs.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

struct ValidateOptions {
  std::string runs;
  bool json = false;
};

void validate(const ValidateOptions& options) {
  std::vector<RunPrediction> predictions;
  for (const PublishedRun& run : read_published_runs(options.runs)) predictions.push_back(predict(run));
  fmt::print("{}", options.json ? write_predictions_json(predictions) : write_predictions(predictions));
}

}  // namespace

void add_validate(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("validate", "predict what others have measured, and print the errors");
  const auto options = std::make_shared<ValidateOptions>();
  verb->add_option("runs", options->runs, "published training runs")->option_text("RUNS.json")->required();
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->footer(
      "Examples:\n"
      "  rehearse validate calibrate/data/runs/published_runs.json\n"
      "  rehearse validate calibrate/data/runs/published_runs.json --json > errors.json");
  verb->callback([options, &exit_code] {
    validate(*options);
    exit_code = kDone;
  });
}

}  // namespace rehearse
