#include "cli/validate_runs.h"

#include <fmt/format.h>

#include <map>

#include "base/units.h"
#include "result/lines.h"
#include "result/memory.h"
#include "result/sizing.h"

namespace rehearse {

namespace {

double error_of(double predicted, double measured) {
  return predicted / measured - 1;
}

double predicted_memory(const PublishedRun& run) {
  const Experiment experiment = read_scenario(run.source, {run.model, true}).experiment;
  const bool hopper_or_later = experiment.cluster.gpu.peak_flops.contains("fp8");
  return peak_bytes(run.model, experiment.plan, gemm_workspace_bytes(hopper_or_later));
}

double predicted_seconds(const PublishedRun& run) {
  Experiment experiment = read_scenario(run.source, {run.model, false}).experiment;
  experiment.engine = Engine::reference;
  return run_iteration(experiment).report.step_time_s;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What keeps `value` from being computed; "" when nothing does.
template <typename Compute>
std::string attempt(std::optional<double>& value, const Compute& compute) {
  try {
    value = compute();
    return "";
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

struct Errors {
  std::vector<double> core, all, memory;
  std::map<std::string, std::vector<double>> by_family;
};

Errors errors_of(const std::vector<RunPrediction>& predictions) {
  Errors errors;
  for (const RunPrediction& each : predictions) {
    if (each.memory_bytes && each.run.memory_bytes)
      errors.memory.push_back(error_of(*each.memory_bytes, *each.run.memory_bytes));
    if (!each.seconds || !each.run.measured_s) continue;
    const double error = error_of(*each.seconds, *each.run.measured_s);
    errors.all.push_back(error);
    errors.by_family[each.run.family].push_back(error);
    if (each.run.core) errors.core.push_back(error);
  }
  return errors;
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

void add_summary(Lines& table, const std::string& name, const std::vector<double>& errors) {
  const ErrorSummary sum = summarise(errors);
  table.line("{:<16}{:>6}{:>10.1f}{:>10.1f}{:>10.1f}{:>10.1f}{:>+10.1f}", name, sum.n, 100 * sum.mean_abs,
             100 * sum.median_abs, 100 * sum.p90_abs, 100 * sum.max_abs, 100 * sum.bias);
}

void add_run(Lines& table, const RunPrediction& each) {
  const PublishedRun& run = each.run;
  std::string time = "-", error = "-", memory = "-", memory_error = "-";
  if (each.seconds) time = format_seconds(*each.seconds);
  if (each.seconds && run.measured_s) error = percent(error_of(*each.seconds, *run.measured_s));
  if (each.memory_bytes && run.memory_bytes) {
    memory = format_bytes(*each.memory_bytes);
    memory_error = percent(error_of(*each.memory_bytes, *run.memory_bytes));
  }
  table.line("{:<52}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  {}", run.id,
             run.measured_s ? format_seconds(*run.measured_s) : "-", time, error,
             run.memory_bytes ? format_bytes(*run.memory_bytes) : "-", memory, memory_error, each.skipped);
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

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json run_json(const RunPrediction& each) {
  const PublishedRun& run = each.run;
  const bool both = each.seconds && run.measured_s;
  return {{"id", run.id},
          {"family", run.family},
          {"core", run.core},
          {"measured_s", or_null(run.measured_s)},
          {"predicted_s", or_null(each.seconds)},
          {"error", both ? Json(error_of(*each.seconds, *run.measured_s)) : Json()},
          {"measured_mem_bytes", or_null(run.memory_bytes)},
          {"predicted_mem_bytes", or_null(each.memory_bytes)},
          {"skipped", each.skipped.empty() ? Json() : Json(each.skipped)}};
}

}  // namespace

RunPrediction predict(const PublishedRun& run) {
  RunPrediction prediction{run, {}, {}, ""};
  if (!run.missing.empty()) {
    prediction.skipped = "the source does not say: " + run.missing;
    return prediction;
  }
  if (run.memory_bytes) attempt(prediction.memory_bytes, [&] { return predicted_memory(run); });
  prediction.skipped = attempt(prediction.seconds, [&] { return predicted_seconds(run); });
  return prediction;
}

std::string write_predictions(const std::vector<RunPrediction>& predictions) {
  Lines table;
  table.line("{:<52}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}", "run", "measured", "predicted", "error", "memory",
             "predicted", "error");
  for (const RunPrediction& each : predictions) add_run(table, each);
  const Errors errors = errors_of(predictions);
  table.line("\n{:<16}{:>6}{:>10}{:>10}{:>10}{:>10}{:>10}   % of |error|", "", "n", "mean", "median", "p90",
             "max", "bias");
  add_summary(table, "core", errors.core);
  add_summary(table, "all", errors.all);
  for (const auto& [family, of_family] : errors.by_family) add_summary(table, family, of_family);
  add_summary(table, "memory", errors.memory);
  return table.take();
}

std::string write_predictions_json(const std::vector<RunPrediction>& predictions) {
  Json json = {{"runs", Json::array()}};
  for (const RunPrediction& each : predictions) json["runs"].push_back(run_json(each));
  const Errors errors = errors_of(predictions);
  Json families = Json::object();
  for (const auto& [family, of_family] : errors.by_family) families[family] = summary_json(of_family);
  json["summary"] = {{"core", summary_json(errors.core)},
                     {"all", summary_json(errors.all)},
                     {"by_family", families},
                     {"memory", summary_json(errors.memory)}};
  return json.dump(2) + "\n";
}

}  // namespace rehearse
