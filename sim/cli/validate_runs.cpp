#include "cli/validate_runs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/quantity.h"
#include "cli/progress.h"
#include "result/lines.h"
#include "result/memory/memory.h"
#include "result/memory/reserved.h"
#include "result/memory/sizing.h"
#include "run/outside_allocator.h"
#include "schedule/orders.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

double error_of(double predicted, double measured) {
  return predicted / measured - 1;
}

// Without what is offloaded of its activations, by as many microbatches as it takes to reach the peak.
struct Occupied {
  Occupied(const PublishedRun& run, bool without_profile)
      : experiment(read_scenario(run.source, {run.model, without_profile}).experiment),
        work(make_work(experiment.model, experiment.plan)),
        order(make_order(shortened(experiment.plan))),
        ranks(rank_memory(order, experiment.plan, work,
                          gemm_workspace_bytes(experiment.cluster.gpu.peak_flops.contains("fp8")))) {}

  std::vector<OutsideAllocator> outside() const {
    return outside_allocator(experiment, experiment.plan, work);
  }

  Experiment experiment;
  Work work;
  Schedule order;
  std::vector<RankMemory> ranks;
};

double predicted_memory(const PublishedRun& run) {
  const Occupied of(run, run.counted != Counted::nvidia_smi);
  const RankMemory& rank = *std::ranges::max_element(of.ranks, {}, &RankMemory::peak_bytes);
  if (run.counted == Counted::allocated) return rank.peak_bytes;
  const auto at = static_cast<std::size_t>(rank.rank);
  const double outside = run.counted == Counted::nvidia_smi ? of.outside()[at].all() : 0;
  const double room = of.experiment.cluster.gpu.memory_bytes - outside;
  return outside + reserved_bytes(of.order.ranks[at], rank, of.experiment.plan, of.work, room);
}

bool predicted_to_fit(const PublishedRun& run) {
  const Occupied of(run, true);
  return fullest(footprints(of.ranks, of.outside(), of.experiment.cluster.gpu.memory_bytes)).fits();
}

void predict_seconds(const PublishedRun& run, Engine engine, RunPrediction& prediction) {
  Experiment experiment = read_scenario(run.source, {run.model, false}).experiment;
  experiment.engine = engine;
  const Report report = run_iteration(experiment).report;
  prediction.seconds = report.step_time_s;
  prediction.fits = fullest_gpu(report).fits();
  prediction.uncertainty = report.uncertainty;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What keeps `predict` from ending; "" when nothing does.
template <typename Predict>
std::string attempt(const Predict& predict) {
  try {
    predict();
    return "";
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

// Whether the measured time lies in the predicted band.
bool is_inside(const RunPrediction& each) {
  return std::abs(*each.run.measured_s / *each.seconds - 1) <= each.uncertainty;
}

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

void add_run(Lines& table, const RunPrediction& each) {
  const PublishedRun& run = each.run;
  std::string time = "-", error = "-", memory = "-", memory_error = "-";
  if (each.seconds) time = format_seconds(*each.seconds);
  if (each.seconds && run.measured_s) error = percent(time_error(each)) + (is_inside(each) ? "" : " *");
  if (each.memory_bytes && run.memory_bytes) {
    memory = format_bytes(*each.memory_bytes);
    memory_error = percent(error_of(*each.memory_bytes, *run.memory_bytes));
  }
  table.line("{:<52}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}  {}", run.id,
             run.measured_s ? format_seconds(*run.measured_s) : "-", time, error,
             run.memory_bytes ? format_bytes(*run.memory_bytes) : "-", memory, memory_error,
             each.skipped + fit_in_words(each));
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

Json fits_json(const PredictionErrors::Fits& fits) {
  return {{"n", fits.of}, {"predicted_to_fit", fits.fit}};
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
          {"predicted_band_s", each.seconds ? Json({*each.seconds * (1 - each.uncertainty),
                                                    *each.seconds * (1 + each.uncertainty)})
                                            : Json()},
          {"error", both ? Json(time_error(each)) : Json()},
          {"inside_band", both ? Json(is_inside(each)) : Json()},
          {"out_of_memory", run.out_of_memory},
          {"predicted_to_fit", each.fits ? Json(*each.fits) : Json()},
          {"measured_mem_bytes", or_null(run.memory_bytes)},
          {"predicted_mem_bytes", or_null(each.memory_bytes)},
          {"skipped", each.skipped.empty() ? Json() : Json(each.skipped)}};
}

// What a process that predicts one run tells the program.
Json write_prediction(const RunPrediction& prediction) {
  return {{"seconds", or_null(prediction.seconds)},
          {"uncertainty", prediction.uncertainty},
          {"memory_bytes", or_null(prediction.memory_bytes)},
          {"fits", prediction.fits ? Json(*prediction.fits) : Json()},
          {"skipped", prediction.skipped}};
}

void read_prediction(const Row& row, RunPrediction& prediction) {
  if (row.state != RowState::done) {
    prediction.skipped = row.reason;
    return;
  }
  const auto number = [&](const char* key) {
    const Json& value = row.report[key];
    return value.is_null() ? std::nullopt : std::optional(value.get<double>());
  };
  prediction.seconds = number("seconds");
  prediction.uncertainty = *number("uncertainty");
  prediction.memory_bytes = number("memory_bytes");
  if (row.report["fits"].is_boolean()) prediction.fits = row.report["fits"].get<bool>();
  prediction.skipped = row.report["skipped"];
}

}  // namespace

double time_error(const RunPrediction& prediction) {
  return error_of(*prediction.seconds, *prediction.run.measured_s);
}

PredictionErrors errors_of(const std::vector<RunPrediction>& predictions) {
  PredictionErrors errors;
  for (const RunPrediction& each : predictions) {
    if (each.fits && (each.run.out_of_memory || each.run.measured_s)) {
      PredictionErrors::Fits& of = each.run.out_of_memory ? errors.out_of_memory : errors.ran;
      of.fit += *each.fits ? 1 : 0;
      ++of.of;
    }
    if (each.memory_bytes && each.run.memory_bytes)
      errors.memory.push_back(error_of(*each.memory_bytes, *each.run.memory_bytes));
    if (!each.seconds || !each.run.measured_s) continue;
    const double error = time_error(each);
    errors.all.push_back(error);
    errors.by_family[each.run.family].push_back(error);
    if (each.run.core) errors.core.push_back(error);
    errors.inside += is_inside(each) ? 1 : 0;
  }
  return errors;
}

RunPrediction predict(const PublishedRun& run, Engine engine) {
  RunPrediction prediction;
  prediction.run = run;
  if (!run.missing.empty()) {
    prediction.skipped = "the source does not say: " + run.missing;
    return prediction;
  }
  if (run.memory_bytes) attempt([&] { prediction.memory_bytes = predicted_memory(run); });
  if (run.out_of_memory) {
    prediction.skipped = attempt([&] { prediction.fits = predicted_to_fit(run); });
    if (prediction.skipped.empty()) prediction.skipped = "ran out of memory";
    return prediction;
  }
  prediction.skipped = attempt([&] { predict_seconds(run, engine, prediction); });
  return prediction;
}

std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, Engine engine, int jobs) {
  std::vector<RunPrediction> predictions;
  for (const PublishedRun& run : runs) predictions.push_back({run, {}, 0, {}, {}, ""});
  std::vector<Point> points(runs.size());
  std::iota(points.begin(), points.end(), Point{0});
  const Evaluate evaluate = [&](Point i) {
    return Row{RowState::done, "", write_prediction(predict(runs[static_cast<std::size_t>(i)], engine))};
  };
  Progress progress(runs.size());
  const Deliver deliver = [&](Point i, const Row& row) {
    read_prediction(row, predictions[static_cast<std::size_t>(i)]);
    progress.row_done();
  };
  const auto never = [] { return false; };
  if (engine == Engine::simgrid)
    run_in_processes(points, evaluate, jobs, never, deliver);
  else
    run_in_threads(points, evaluate, jobs, never, deliver);
  return predictions;
}

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
  add_summary(table, "memory", errors.memory);
  table.line("\n{} of {} measured times lie within what the profile is known to be off; * does not",
             errors.inside, errors.all.size());
  table.line("{} of {} runs fit as predicted{}", errors.ran.fit, errors.ran.of,
             errors.out_of_memory.of == 0
                 ? ""
                 : fmt::format("; of {} that ran out of memory {} were predicted not to fit",
                               errors.out_of_memory.of, errors.out_of_memory.of - errors.out_of_memory.fit));
  return table.take();
}

std::string write_predictions_json(const std::vector<RunPrediction>& predictions) {
  Json json = {{"runs", Json::array()}};
  for (const RunPrediction& each : predictions) json["runs"].push_back(run_json(each));
  const PredictionErrors errors = errors_of(predictions);
  Json families = Json::object();
  for (const auto& [family, of_family] : errors.by_family) families[family] = summary_json(of_family);
  json["summary"] = {
      {"core", summary_json(errors.core)},
      {"all", summary_json(errors.all)},
      {"by_family", families},
      {"memory", summary_json(errors.memory)},
      {"fit", {{"ran", fits_json(errors.ran)}, {"out_of_memory", fits_json(errors.out_of_memory)}}},
      {"inside_band", {{"n", errors.inside}, {"of", errors.all.size()}}}};
  return json.dump(2) + "\n";
}

}  // namespace rehearse
