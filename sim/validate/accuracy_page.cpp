#include "validate/accuracy_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "run/band.h"
#include "validate/left_out.h"
#include "validate/run_classes.h"

namespace rehearse {

namespace {

constexpr std::size_t kWorst = 10;

std::string summary_cells(const ErrorSummary& sum) {
  return fmt::format("{} | {:.1f} | {:.1f} | {:+.1f}", sum.n, 100 * sum.median_abs, 100 * sum.p90_abs,
                     100 * sum.bias);
}

std::string summary_row(const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} |", name, sum.n,
                     100 * sum.median_abs, 100 * sum.p90_abs, 100 * sum.mean_abs, 100 * sum.max_abs,
                     100 * sum.bias);
}

std::string opening(const std::vector<RunPrediction>& predictions, const PredictionErrors& errors,
                    Engine engine) {
  const auto open =
      std::ranges::count_if(predictions, [](const RunPrediction& each) { return !each.run.missing.empty(); });
  const ErrorSummary all = summarise(errors.full.all), as_stated = summarise(errors.as_stated.all);
  return fmt::format(
      "# Accuracy\n\n"
      "{} published training runs are predicted with a median error of {:.1f} % and a 90th percentile of "
      "{:.1f} %. "
      "All of them were known while the program was written, so these figures are "
      "[no blind test](#how-independent-the-figures-are). Runs that came later are on "
      "[a page of their own](blind.md).\n\n"
      "These are predictions with all switches of a run. With the switches that its source states, and "
      "defaults for the rest, the median error is {:.1f} % and the 90th percentile {:.1f} %.\n\n"
      "An error is |predicted / measured - 1|. The bias keeps the sign: a negative one means predicted too "
      "fast. "
      "Step times come from the {} engine. Of {} runs, {} leave settings open, and {} state memory only.\n",
      all.n, 100 * all.median_abs, 100 * all.p90_abs, 100 * as_stated.median_abs, 100 * as_stated.p90_abs,
      to_string(engine), predictions.size(), open,
      predictions.size() - all.n - static_cast<std::size_t>(open));
}

std::string class_table(const std::vector<RunPrediction>& predictions) {
  std::string text =
      "\n## By class\n\n"
      "| class | runs | median, % | 90th percentile, % | bias, % | configuration known from |\n"
      "|---|---|---|---|---|---|\n";
  const auto row = [](const std::string& name, const ClassErrors& of) {
    return fmt::format("| {} | {} | {} |\n", name, summary_cells(summarise(of.errors)), to_string(of.known));
  };
  const std::map<std::string, ClassErrors> classes = errors_by_class(predictions);
  for (const bool dense : {true, false})
    for (const auto& [name, of] : classes)
      if (name.starts_with("dense") == dense) text += row(name, of);
  text += row("memory of one GPU", memory_errors(predictions));
  return text + fmt::format(
                    "\nThe class follows from the run's own data; the first that holds counts:\n\n"
                    "1. `experts (MoE)`: the model has experts.\n"
                    "2. `FSDP`: the framework is PyTorch's FSDP, of either generation, or torchtitan.\n"
                    "3. `launch-bound`: small models. The GPU waits for the CPU's launches for {:.0f} % of "
                    "kernel time "
                    "or more, as predicted.\n"
                    "4. `dense on ...`: all others, by GPU.\n\n"
                    "The configuration is known from:\n\n"
                    "- `script`: the run's own script, recipe, submission or log.\n"
                    "- `table`: a paper or table. Settings that it omits are the framework's defaults of "
                    "that month.\n"
                    "- `inferred`: some settings are neither stated nor confirmed by a source.\n",
                    100 * kLaunchBound);
}

std::string independence(const std::vector<RunPrediction>& predictions, const PredictionErrors& errors,
                         const Json& mechanisms) {
  const auto of_no_family = std::ranges::count_if(mechanisms, [](const Json& each) {
    return each.at("because_of").get<std::string>().starts_with("no family");
  });
  const auto plots =
      std::ranges::count_if(predictions, [](const RunPrediction& each) { return each.run.read_from_plot; });
  return fmt::format(
      "\n## How independent the figures are\n\n"
      "- **All {} runs were visible during development.** None was held back.\n"
      "- **{} of {} mechanisms were added because of runs of this page.** The other {} have another "
      "reason, "
      "such as a source or runs of other files. [The evidence](accuracy-evidence.md#mechanisms) lists each "
      "mechanism with its source and the errors before and after.\n"
      "- **Rates and latencies come from measurements of kernels and collectives, traces and source code.** "
      "None is "
      "fitted to a step time. But the errors decided which mechanism was looked for, and when to stop.\n"
      "- **The {:.0f} % residual of the error bar is estimated from these runs.** It is fitted to their step "
      "times.\n"
      "- **Some runs repeat each other.** The {} runs of `vtrain-single` were composed by their source from "
      "32 pairs "
      "of times. An error repeats wherever its pair does.\n"
      "- **Some sources serve twice.** SimuMax published both the GEMM rates of the A100 and B200 profiles "
      "and the "
      "runs `simumax`.\n"
      "- **{} measured values were read from plots.**\n",
      predictions.size(), static_cast<std::ptrdiff_t>(mechanisms.size()) - of_no_family, mechanisms.size(),
      of_no_family, 100 * kLeftOut,
      errors.full.by_family.contains("vtrain-single") ? errors.full.by_family.at("vtrain-single").size() : 0,
      plots);
}

std::string error_bar(const std::vector<RunPrediction>& predictions, const PredictionErrors& errors) {
  Share all;
  for (const auto& [family, share] : held_out(predictions)) {
    all.n += share.n;
    all.of += share.of;
  }
  const auto percent_of = [](const Share& share) {
    return 100.0 * static_cast<double>(share.n) / static_cast<double>(std::max<std::size_t>(1, share.of));
  };
  return fmt::format(
      "\n## The error bar\n\n"
      "Every prediction carries an error bar that should hold nine of ten measured times. It has two "
      "parts:\n\n"
      "- the 90th percentile of the error of GEMMs and collectives that the profile has no sample of, "
      "weighted by "
      "their shares of the step;\n"
      "- a residual of {:.0f} % for omitted effects. These runs ask for {:.1f} % if nine of ten shall lie "
      "inside, and "
      "each source counts once.\n\n"
      "{} of {} measured times lie inside ({:.0f} %), fewer than nine of ten: sources with many runs lie "
      "outside more often. "
      "A run with open settings takes the interval of all its possible settings that fit in memory.\n\n"
      "As a check, the residual is taken from all other sources. Then {} of {} times lie inside ({:.0f} %; "
      "last "
      "column [by source](#by-source)).\n",
      100 * kLeftOut, 100 * left_out(predictions), errors.inside.n, errors.inside.of,
      percent_of(errors.inside), all.n, all.of, percent_of(all));
}

std::string source_table(const std::vector<RunPrediction>& predictions, const PredictionErrors& errors) {
  const std::map<std::string, Share> inside = held_out(predictions);
  std::string text =
      "\n## By source\n\n"
      "`core` is a sample of the runs, a few of each larger source, marked in the data file.\n\n"
      "| source | runs | median, % | 90th percentile, % | mean, % | largest, % | bias, % | inside the error "
      "bar of the others |\n"
      "|---|---|---|---|---|---|---|---|\n";
  text += summary_row("core", errors.full.core) + " |\n" + summary_row("all", errors.full.all) + " |\n";
  for (const auto& [family, of_family] : errors.full.by_family) {
    const Share& share = inside.at(family);
    text += summary_row(family, of_family) + fmt::format(" {} of {} |\n", share.n, share.of);
  }
  return text + summary_row("memory", errors.memory) + " |\n";
}

std::string settings(const PredictionErrors& errors, const Json& families) {
  std::string text = "\n## Settings and known errors of each source\n";
  for (const auto& [family, of_family] : errors.full.by_family) {
    const Json known = families.value(family, Json::object());
    text += fmt::format("\n### {}\n\n{}.\n", family, known.value("why", "Settings are not recorded"));
    if (known.contains("off"))
      text += fmt::format("\n*Known errors:* {}.\n", known.at("off").get<std::string>());
  }
  return text;
}

std::string worst_rows(const std::vector<RunPrediction>& predictions) {
  std::vector<const RunPrediction*> both;
  for (const RunPrediction& each : predictions)
    if (each.seconds && each.run.measured_s) both.push_back(&each);
  std::sort(both.begin(), both.end(), [](const RunPrediction* a, const RunPrediction* b) {
    return std::abs(time_error(*a)) > std::abs(time_error(*b));
  });
  std::string text =
      "\n## The ten largest errors\n\n| run | measured | predicted | error |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < std::min(kWorst, both.size()); ++i)
    text += fmt::format("| {} | {} | {} | {:+.1f} % |\n", both[i]->run.id,
                        format_seconds(*both[i]->run.measured_s), format_seconds(*both[i]->seconds),
                        100 * time_error(*both[i]));
  return text;
}

// Runs with open settings: the interval that contains all of their predictions.
std::string open_rows(const std::vector<RunPrediction>& predictions) {
  std::string text =
      "\n## Runs with open settings\n\n| run | the source omits | predicted | measured "
      "|\n|---|---|---|---|\n";
  for (const RunPrediction& each : predictions)
    if (!each.run.missing.empty())
      text +=
          fmt::format("| {} | {} | {} | {} |\n", each.run.id, each.run.missing,
                      each.band ? format_seconds(each.band->low) + " to " + format_seconds(each.band->high)
                                : "not predicted",
                      each.run.measured_s ? format_seconds(*each.run.measured_s) : "not stated");
  return text;
}

}  // namespace

std::string write_accuracy_page(const std::vector<RunPrediction>& predictions, Engine engine,
                                const Json& families, const Json& mechanisms) {
  const PredictionErrors errors = errors_of(predictions);
  return opening(predictions, errors, engine) + class_table(predictions) +
         independence(predictions, errors, mechanisms) + error_bar(predictions, errors) +
         worst_rows(predictions) + source_table(predictions, errors) + open_rows(predictions) +
         settings(errors, families) +
         "\n## How this page is made\n\n"
         "It is written by the program. A test compares it with what the program writes today.\n\n"
         "```sh\n"
         "rehearse validate calibrate/data/runs/published_runs.jsonl \\\n"
         "  --page docs/accuracy.md --evidence docs/accuracy-evidence.md\n"
         "```\n";
}

}  // namespace rehearse
