#include <fmt/core.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "base/data_path.h"
#include "base/progress.h"
#include "base/say.h"
#include "cli/file_kind.h"
#include "cli/jobs.h"
#include "cli/output.h"
#include "cli/validate_collectives.h"
#include "cli/verbs.h"
#include "draw/scatter.h"
#include "scenario/scenario.h"
#include "validate/accuracy_page.h"
#include "validate/predict_runs.h"
#include "validate/write_predictions.h"

namespace rehearse {

namespace {

struct ValidateOptions {
  std::string runs;
  nccl::LogImport tables;
  std::string profile, svg, page, evidence;
  std::string engine = "simgrid", as_stated = "on";
  int jobs = 0;
  bool json = false;
};

void write_scatter(const std::vector<RunPrediction>& predictions, const std::string& file) {
  constexpr double kBand = 0.1;
  std::vector<Comparison> comparisons;
  for (const RunPrediction& each : predictions)
    comparisons.push_back(
        {each.run.id, each.run.family, each.run.measured_s.value_or(0), each.seconds.value_or(0)});
  write_file(file, [&](std::ostream& out) {
    out << draw_scatter("Iterations predicted and measured", comparisons, kBand);
  });
}

void write_pages(const std::vector<RunPrediction>& predictions, Engine engine,
                 const ValidateOptions& options) {
  const auto read = [](const char* name) {
    return read_json_file((data_directory() / "calibrate/data/runs" / name).string());
  };
  const Json mechanisms = read("mechanisms.json");
  if (!options.page.empty())
    write_file(options.page, [&](std::ostream& out) {
      out << write_accuracy_page(predictions, engine, read("families.json"), mechanisms);
    });
  if (!options.evidence.empty())
    write_file(options.evidence,
               [&](std::ostream& out) { out << write_accuracy_evidence(predictions, mechanisms); });
}

Experiment read_experiment(const Json& scenario, const std::string& place, const Replaced& replaced) {
  return read_scenario(ScenarioSource{place, scenario, {}}, replaced).experiment;
}

// Models, clusters and profiles of all runs. They are read once, before processes are made that predict.
Inputs& inputs_of_runs() {
  static Inputs inputs;
  return inputs;
}

// Broken rules only skip the run.
void check_words(const Json& scenario, const std::string& place) {
  Replaced replaced;
  replaced.inputs = &inputs_of_runs();
  replaced.without_profile = replaced.without_rules = true;
  const Experiment experiment = read_experiment(scenario, place, replaced);
  if (!scenario.contains("profile") && !experiment.cluster.profile.empty())
    inputs_of_runs().profile(experiment.cluster.profile);
}

std::vector<RunPrediction> predicted(const std::vector<PublishedRun>& runs, Engine engine,
                                     const ValidateOptions& options) {
  std::optional<Progress> progress;
  PredictionRequest request;
  request.engine = engine;
  request.jobs = jobs_or_cores(options.jobs);
  request.as_stated = options.as_stated == "on";
  request.read = [](const Json& scenario, const std::string& place, PredictionRequest::Profiles profiles) {
    Replaced replaced;
    replaced.inputs = &inputs_of_runs();
    replaced.without_profile = profiles == PredictionRequest::Profiles::none;
    return read_experiment(scenario, place, replaced);
  };
  request.done = [&progress](std::size_t of) {
    if (!progress) progress.emplace(of);
    progress->row_done();
  };
  return predict(runs, request);
}

void validate(const ValidateOptions& options) {
  if (!options.tables.files.empty()) {
    print_answer(validate_collectives(options.tables, options.profile, options.json), options.json);
    return;
  }
  if (options.runs.empty())
    throw InputError({"command line", "RUNS.jsonl", "something to predict is needed", "nothing given",
                      "RUNS.jsonl or --nccl TABLE.json"});
  const Engine engine = options.engine == "reference" ? Engine::reference : Engine::simgrid;
  const std::vector<PublishedRun> runs = read_runs(options.runs, check_words);
  require_writable({options.svg, options.page, options.evidence}, options.json ? Prints::data : Prints::talk);
  const std::vector<RunPrediction> predictions = predicted(runs, engine, options);
  if (!options.svg.empty()) write_scatter(predictions, options.svg);
  write_pages(predictions, engine, options);
  print_answer(options.json ? write_predictions_json(predictions) : write_predictions(predictions),
               options.json);
}

}  // namespace

Verb validate_verb() {
  const auto options = std::make_shared<ValidateOptions>();
  Verb verb{"validate", "predict published measurements and print the errors"};
  const auto add = [&](const char* needs, VerbOption option) {
    option.needs = needs;
    verb.add(std::move(option));
  };
  const char *runs = "runs", *tables = "--nccl";
  verb.add(
      {{runs}, &options->runs, "published training runs: a scenario with `measured` a line", "RUNS.jsonl"});
  verb.add({.names = {tables},
            .target = &options->tables.files,
            .help = "nccl-tests tables or logs instead of runs",
            .value = "TABLE.json|LOG...",
            .excludes = runs});
  for (const VerbOption& option : log_options(options->tables)) add(tables, option);
  add(tables, {{"--profile"},
               &options->profile,
               "profile whose collectives predict the tables (default: as shipped)",
               "NAME|FILE"});
  add(runs, {.names = {"--engine"},
             .target = &options->engine,
             .help = "simgrid (shares links, as simulate does) or reference (longest path)",
             .value = "NAME",
             .words = {"simgrid", "reference"}});
  add(runs, jobs_option(options->jobs, "runs at a time"));
  add(runs, {.names = {"--as-stated"},
             .target = &options->as_stated,
             .help = "predict each run again with its stated switches alone",
             .value = "on|off",
             .words = {"on", "off"}});
  add(runs, {.names = {"--svg"},
             .target = &options->svg,
             .help = "draw predicted against measured times",
             .value = "FILE",
             .refuse = named_as(".svg")});
  add(runs, {{"--page"}, &options->page, "write the errors by class and source, in Markdown", "FILE"});
  add(runs,
      {{"--evidence"}, &options->evidence, "write the tables of mechanisms and runs, in Markdown", "FILE"});
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.footer =
      "Examples:\n"
      "  rehearse validate calibrate/data/runs/published_runs.jsonl\n"
      "  rehearse validate calibrate/data/runs/published_runs.jsonl --json > errors.json\n"
      "  rehearse validate calibrate/data/runs/published_runs.jsonl --svg accuracy.svg\n"
      "  rehearse validate calibrate/data/runs/published_runs.jsonl --page docs/accuracy.md\n"
      "  rehearse validate --nccl calibrate/data/nccl/*.json\n"
      "  rehearse validate --nccl all_reduce.log --cluster dgx-h100\n"
      "  rehearse validate --nccl my-table.json --profile my-profile.json --json";
  verb.run = [options] {
    validate(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
