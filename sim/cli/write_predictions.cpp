#include "cli/write_predictions.h"

#include <fmt/core.h>

#include "base/quantity.h"
#include "cli/left_out.h"
#include "cli/run_classes.h"
#include "result/lines.h"
#include "run/band.h"

namespace rehearse {

namespace {

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

void add_summary(Lines& table, const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  table.line("{:<16}{:>6}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>+10.1f}", name, sum.n, 100 * sum.mean_abs,
             100 * sum.median_abs, 100 * sum.p90_abs, 100 * sum.max_abs, 100 * sum.bias);
}

std::string fit_in_words(const RunPrediction& each) {
  if (!each.fits || *each.fits != each.run.out_of_memory) return "";
  return each.run.out_of_memory ? ", predicted to fit" : "predicted not to fit";
}

// Of a run that leaves something open.
std::string open_in_words(const RunPrediction& each) {
  if (each.seconds || !each.band) return "";
  return fmt::format(", {} to {}{}", format_seconds(each.band->low), format_seconds(each.band->high),
                     is_inside(each) ? "" : " *");
}

void add_run(Lines& table, const RunPrediction& each) {
  const PublishedRun& run = each.run;
  std::string time = "-", error = "-", memory = "-", memory_error = "-";
  if (each.seconds) time = format_seconds(*each.seconds);
  if (each.seconds && run.measured_s) error = percent(time_error(each)) + (is_inside(each) ? "" : " *");
  if (each.memory_bytes && run.memory_bytes) {
    memory = format_bytes(*each.memory_bytes);
    memory_error = percent(relative_error(*each.memory_bytes, *run.memory_bytes));
  }
  table.line("{:<52}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  {}", run.id,
             run.measured_s ? format_seconds(*run.measured_s) : "-", time, error,
             run.memory_bytes ? format_bytes(*run.memory_bytes) : "-", memory, memory_error,
             each.skipped + open_in_words(each) + fit_in_words(each));
}

Json summary_json(const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  return {{"n", sum.n},
          {"mean_abs", sum.mean_abs},
          {"median_abs", sum.median_abs},
          {"p90_abs", sum.p90_abs},
          {"max_abs", sum.max_abs},
          {"bias", sum.bias}};
}

Json fits_json(const Share& fits) {
  return {{"n", fits.of}, {"predicted_to_fit", fits.n}};
}

Json share_json(const Share& share) {
  return {{"n", share.n}, {"of", share.of}};
}

Json held_out_json(const std::vector<RunPrediction>& predictions) {
  Json families = Json::object();
  for (const auto& [family, share] : held_out(predictions)) families[family] = share_json(share);
  return families;
}

Json run_json(const RunPrediction& each) {
  const PublishedRun& run = each.run;
  const bool both = each.seconds && run.measured_s;
  return {{"id", run.id},
          {"family", run.family},
          {"class", both ? Json(class_of(each)) : Json()},
          {"core", run.core},
          {"measured_s", or_null(run.measured_s)},
          {"predicted_s", or_null(each.seconds)},
          {"predicted_band_s", each.band ? Json({each.band->low, each.band->high}) : Json()},
          {"error", both ? Json(time_error(each)) : Json()},
          {"inside_band", each.band && run.measured_s ? Json(is_inside(each)) : Json()},
          {"out_of_memory", run.out_of_memory},
          {"predicted_to_fit", each.fits ? Json(*each.fits) : Json()},
          {"measured_mem_bytes", or_null(run.memory_bytes)},
          {"predicted_mem_bytes", or_null(each.memory_bytes)},
          {"skipped", each.skipped.empty() ? Json() : Json(each.skipped)}};
}

}  // namespace

std::string write_predictions(const std::vector<RunPrediction>& predictions) {
  Lines table;
  table.line("{:<52}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "run", "measured", "predicted", "error", "memory",
             "predicted", "error");
  for (const RunPrediction& each : predictions) add_run(table, each);
  const PredictionErrors errors = errors_of(predictions);
  table.line("\n{:<16}{:>6}{:>10}{:>10}{:>10}{:>10}{:>10}   % of |error|", "", "n", "mean", "median", "p90",
             "max", "bias");
  add_summary(table, "core", errors.core);
  add_summary(table, "all", errors.all);
  for (const auto& [family, of_family] : errors.by_family) add_summary(table, family, of_family);
  for (const auto& [name, of_class] : errors_by_class(predictions)) add_summary(table, name, of_class.errors);
  add_summary(table, "memory", errors.memory);
  table.line("\n{} of {} measured times are inside the 90 % interval; * marks a time outside",
             errors.inside.n, errors.inside.of);
  table.line("{} of {} runs fit as predicted{}", errors.ran.n, errors.ran.of,
             errors.out_of_memory.of == 0
                 ? ""
                 : fmt::format("; of {} that ran out of memory {} were predicted not to fit",
                               errors.out_of_memory.of, errors.out_of_memory.of - errors.out_of_memory.n));
  return table.take();
}

std::string write_predictions_json(const std::vector<RunPrediction>& predictions) {
  Json json = {{"runs", Json::array()}};
  for (const RunPrediction& each : predictions) json["runs"].push_back(run_json(each));
  const PredictionErrors errors = errors_of(predictions);
  Json families = Json::object();
  for (const auto& [family, of_family] : errors.by_family) families[family] = summary_json(of_family);
  Json classes = Json::object();
  for (const auto& [name, of_class] : errors_by_class(predictions))
    classes[name] = summary_json(of_class.errors);
  json["summary"] = {
      {"core", summary_json(errors.core)},
      {"all", summary_json(errors.all)},
      {"by_family", families},
      {"by_class", classes},
      {"memory", summary_json(errors.memory)},
      {"fit", {{"ran", fits_json(errors.ran)}, {"out_of_memory", fits_json(errors.out_of_memory)}}},
      {"inside_band", share_json(errors.inside)},
      {"left_out", {{"in_every_band", kLeftOut}, {"of_these_runs", left_out(predictions)}}},
      {"held_out", held_out_json(predictions)}};
  return json.dump(2) + "\n";
}

}  // namespace rehearse
