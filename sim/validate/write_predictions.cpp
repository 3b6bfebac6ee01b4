#include "validate/write_predictions.h"

#include <fmt/core.h>

#include <set>

#include "base/quantity.h"
#include "result/lines.h"
#include "run/band.h"
#include "validate/left_out.h"
#include "validate/run_classes.h"

namespace rehearse {

namespace {

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string summary_text(const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  if (sum.n == 0) return fmt::format("{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}", 0, "-", "-", "-", "-", "-");
  return fmt::format("{:>6}{:>8.1f}{:>8.1f}{:>8.1f}{:>8.1f}{:>+8.1f}", sum.n, 100 * sum.mean_abs,
                     100 * sum.median_abs, 100 * sum.p90_abs, 100 * sum.max_abs, 100 * sum.bias);
}

void add_summary(Lines& table, const std::string& name, const std::vector<double>& full,
                 const std::vector<double>& as_stated) {
  table.line("{:<16}{}{}", name, summary_text(full), as_stated.empty() ? "" : summary_text(as_stated));
}

std::vector<double> of_family(const TimeErrors& errors, const std::string& family) {
  const auto found = errors.by_family.find(family);
  return found == errors.by_family.end() ? std::vector<double>() : found->second;
}

// Families with a prediction in at least one column.
std::set<std::string> families_of(const PredictionErrors& errors) {
  std::set<std::string> families;
  for (const TimeErrors* column : {&errors.full, &errors.as_stated})
    for (const auto& item : column->by_family) families.insert(item.first);
  return families;
}

std::string fit_in_words(const RunPrediction& each) {
  if (!each.fits || *each.fits != each.run.out_of_memory) return "";
  return each.run.out_of_memory ? ", predicted to fit" : "predicted not to fit";
}

// Text for a run with open settings.
std::string open_in_words(const RunPrediction& each) {
  if (each.seconds || !each.band) return "";
  return fmt::format(", {} to {}{}", format_seconds(each.band->low), format_seconds(each.band->high),
                     is_inside(each) ? "" : " *");
}

std::string or_dash(const std::optional<double>& seconds) {
  return seconds ? format_seconds(*seconds) : "-";
}

void add_run(Lines& table, const RunPrediction& each) {
  const PublishedRun& run = each.run;
  std::string error = "-", error_as_stated = "-", memory = "-", memory_error = "-";
  if (each.seconds && run.measured_s) error = percent(time_error(each)) + (is_inside(each) ? "" : " *");
  if (each.as_stated_s && run.measured_s)
    error_as_stated = percent(relative_error(*each.as_stated_s, *run.measured_s));
  if (each.memory_bytes && run.memory_bytes) {
    memory = format_bytes(*each.memory_bytes);
    memory_error = percent(relative_error(*each.memory_bytes, *run.memory_bytes));
  }
  table.line("{:<52}{:>10}{:>10}{:>10}{:>11}{:>10}{:>10}{:>10}{:>10}  {}", run.id, or_dash(run.measured_s),
             or_dash(each.seconds), error, or_dash(each.as_stated_s), error_as_stated,
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

Json summary_json(const TimeErrors& errors) {
  Json families = Json::object();
  for (const auto& [family, of_family] : errors.by_family) families[family] = summary_json(of_family);
  return {{"core", summary_json(errors.core)}, {"all", summary_json(errors.all)}, {"by_family", families}};
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
  const bool both = each.seconds && run.measured_s, both_as_stated = each.as_stated_s && run.measured_s;
  const Json inside = each.band && run.measured_s ? Json(is_inside(each)) : Json();
  return {
      {"id", run.id},
      {"family", run.family},
      {"class", both ? Json(class_of(each)) : Json()},
      {"core", run.core},
      {"measured_s", or_null(run.measured_s)},
      {"predicted_s", or_null(each.seconds)},
      {"predicted_band_s", each.band ? Json({each.band->low, each.band->high}) : Json()},
      {"error", both ? Json(time_error(each)) : Json()},
      {"inside_band", inside},
      {"inside_interval", inside},
      {"predicted_as_stated_s", or_null(each.as_stated_s)},
      {"error_as_stated", both_as_stated ? Json(relative_error(*each.as_stated_s, *run.measured_s)) : Json()},
      {"skipped_as_stated", each.skipped_as_stated.empty() ? Json() : Json(each.skipped_as_stated)},
      {"out_of_memory", run.out_of_memory},
      {"predicted_to_fit", each.fits ? Json(*each.fits) : Json()},
      {"measured_mem_bytes", or_null(run.memory_bytes)},
      {"predicted_mem_bytes", or_null(each.memory_bytes)},
      {"skipped", each.skipped.empty() ? Json() : Json(each.skipped)}};
}

}  // namespace

std::string write_predictions(const std::vector<RunPrediction>& predictions) {
  Lines table;
  table.line("{:<52}{:>10}{:>10}{:>10}{:>11}{:>10}{:>10}{:>10}{:>10}", "run", "measured", "full", "error",
             "as stated", "error", "memory", "predicted", "error");
  for (const RunPrediction& each : predictions) add_run(table, each);
  const PredictionErrors errors = errors_of(predictions);
  table.line("\n{:<16}{:>36}{:>46}", "% of |error|", "full: all switches",
             "as stated: defaults for the rest");
  table.line("{:<16}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}", "", "n", "mean", "median",
             "p90", "max", "bias", "n", "mean", "median", "p90", "max", "bias");
  add_summary(table, "core", errors.full.core, errors.as_stated.core);
  add_summary(table, "all", errors.full.all, errors.as_stated.all);
  for (const std::string& family : families_of(errors))
    add_summary(table, family, of_family(errors.full, family), of_family(errors.as_stated, family));
  for (const auto& [name, of_class] : errors_by_class(predictions))
    add_summary(table, name, of_class.errors, {});
  add_summary(table, "memory", errors.memory, {});
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
  json["summary"] = summary_json(errors.full);
  Json classes = Json::object();
  for (const auto& [name, of_class] : errors_by_class(predictions))
    classes[name] = summary_json(of_class.errors);
  json["summary"].update(
      Json{{"by_class", classes},
           {"memory", summary_json(errors.memory)},
           {"fit", {{"ran", fits_json(errors.ran)}, {"out_of_memory", fits_json(errors.out_of_memory)}}},
           {"inside_band", share_json(errors.inside)},
           {"left_out", {{"in_every_band", kLeftOut}, {"of_these_runs", left_out(predictions)}}},
           {"held_out", held_out_json(predictions)}});
  json["summary_as_stated"] = summary_json(errors.as_stated);
  return json.dump(2) + "\n";
}

}  // namespace rehearse
