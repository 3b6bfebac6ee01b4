#include "cli/accuracy_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "cli/left_out.h"
#include "run/band.h"

namespace rehearse {

namespace {

constexpr std::size_t kWorst = 10;

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

double percent_of(const Share& share) {
  return 100.0 * static_cast<double>(share.n) / static_cast<double>(std::max<std::size_t>(1, share.of));
}

std::string summary_row(const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} |\n", name, sum.n,
                     100 * sum.mean_abs, 100 * sum.median_abs, 100 * sum.p90_abs, 100 * sum.max_abs,
                     100 * sum.bias);
}

std::string summary_table(const PredictionErrors& errors) {
  std::string text =
      "| runs | n | mean | median | 90th percentile | max | bias |\n|---|---|---|---|---|---|---|\n";
  text += summary_row("core", errors.core) + summary_row("all", errors.all);
  for (const auto& [family, of_family] : errors.by_family) text += summary_row(family, of_family);
  return text + summary_row("memory", errors.memory);
}

std::string band_words(const std::vector<RunPrediction>& predictions, const PredictionErrors& errors) {
  std::string families;
  Share all;
  for (const auto& [family, share] : held_out(predictions)) {
    families += fmt::format("{}{} {} of {}", families.empty() ? "" : ", ", family, share.n, share.of);
    all.n += share.n;
    all.of += share.of;
  }
  return fmt::format(
      "\nEvery prediction carries a band: the 90th percentile by which products and collectives are off "
      "that the profile's tables were not given, by their shares of the step, and {:.0f} % for what the "
      "model leaves out, which is what these runs ask for ({:.1f} %) if nine measured times of ten shall "
      "lie inside, each family counting once. A run that does not say everything has the bands of all "
      "that it may be and that fits. {} of {} measured times lie inside ({:.0f} %). Where the share of "
      "what is left out is taken from all families but the one that is looked at, {} of {} do: {}.\n",
      100 * kLeftOut, 100 * left_out(predictions), errors.inside.n, errors.inside.of,
      percent_of(errors.inside), all.n, all.of, families);
}

std::string family_notes(const PredictionErrors& errors, const Json& practices) {
  std::string text;
  for (const auto& [family, of_family] : errors.by_family) {
    const Json practice = practices.value(family, Json::object());
    text += fmt::format("- **{}**: {}.", family, practice.value("why", ""));
    if (practice.contains("off")) text += fmt::format(" *{}*", practice.at("off").get<std::string>());
    text += "\n";
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
  std::string text = "| run | measured | predicted | error |\n|---|---|---|---|\n";
  for (std::size_t i = 0; i < std::min(kWorst, both.size()); ++i)
    text += fmt::format("| {} | {} | {} | {} |\n", both[i]->run.id, format_seconds(*both[i]->run.measured_s),
                        format_seconds(*both[i]->seconds), percent(time_error(*both[i])));
  return text;
}

std::string mechanism_rows(const Json& mechanisms) {
  std::string text =
      "| mechanism | because of | source | what it did there | and elsewhere |\n|---|---|---|---|---|\n";
  for (const Json& each : mechanisms)
    text += fmt::format("| {} | {} | {} | {} | {} |\n", each.at("mechanism").get<std::string>(),
                        each.at("because_of").get<std::string>(), each.at("source").get<std::string>(),
                        each.at("there").get<std::string>(), each.at("elsewhere").get<std::string>());
  return text;
}

std::string skipped_rows(const std::vector<RunPrediction>& predictions) {
  std::map<std::string, int> reasons;
  std::string text;
  for (const RunPrediction& each : predictions) {
    if (each.band && !each.seconds && each.run.measured_s)
      text += fmt::format("- {}: {}. Whatever it may be takes {} to {}; measured {}\n", each.run.id,
                          each.skipped, format_seconds(each.band->low), format_seconds(each.band->high),
                          format_seconds(*each.run.measured_s));
    else if (!each.skipped.empty())
      ++reasons[each.skipped];
  }
  for (const auto& [reason, count] : reasons) text += fmt::format("- {} x {}\n", count, reason);
  return text;
}

}  // namespace

std::string write_accuracy_page(const std::vector<RunPrediction>& predictions, Engine engine,
                                const Json& practices, const Json& mechanisms) {
  const PredictionErrors errors = errors_of(predictions);
  std::string text = fmt::format(
      "# How accurate the predictions are\n\nWritten by `rehearse validate RUNS.json --page FILE`. {} "
      "published "
      "training runs, {} of them predicted; iteration times by the {} engine, memory where it was "
      "printed. "
      "Errors are |predicted / measured - 1| in percent; the bias is signed. No constant is fitted to a step "
      "time: kernels and collectives come from microbenchmarks, the rest from what each framework did.\n\n",
      predictions.size(), errors.all.size(), to_string(engine));
  text += summary_table(errors);
  text += band_words(predictions, errors);
  text += "\n## The ten worst\n\n" + worst_rows(predictions);
  text += "\n## What each family did, and what is known of its errors\n\n" + family_notes(errors, practices);
  text += "\n## Which mechanism came from which family\n\n" + mechanism_rows(mechanisms);
  text += "\n## Not predicted\n\n" + skipped_rows(predictions);
  return text;
}

}  // namespace rehearse
