#include "validate/predict_runs.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "memory/memory.h"
#include "memory/reserved.h"
#include "memory/sizing.h"
#include "plan/frameworks/traits.h"
#include "run/outside_allocator.h"
#include "schedule/orders.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

using Profiles = PredictionRequest::Profiles;

// One scenario of a run's line.
struct Candidate {
  const Json& scenario;
  const std::string& place;
};

// Memory without offloaded activations, with enough microbatches to reach the peak.
struct RankMemories {
  RankMemories(const Candidate& candidate, const PredictionRequest& request, Profiles profiles)
      : experiment(request.read(candidate.scenario, candidate.place, profiles)),
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

double predicted_memory(const PublishedRun& run, const PredictionRequest& request) {
  const bool counts_context = run.counted == Counted::nvidia_smi;
  const RankMemories of({run.candidates.front(), run.place}, request,
                        counts_context ? Profiles::read : Profiles::none);
  const RankMemory& rank = *std::ranges::max_element(of.ranks, {}, &RankMemory::peak_bytes);
  if (run.counted == Counted::allocated) return rank.peak_bytes;
  const auto at = static_cast<std::size_t>(rank.rank);
  const double outside = counts_context ? of.outside()[at].all() : 0;
  const double room = of.experiment.cluster.gpu.memory_bytes - outside;
  return outside + reserved_bytes(of.order.ranks[at], rank, of.experiment.plan, of.work, room);
}

bool predicted_to_fit(const Candidate& candidate, const PredictionRequest& request) {
  const RankMemories of(candidate, request, Profiles::none);
  return memory_verdict(footprints(of.ranks, of.outside(), of.experiment.cluster.gpu.memory_bytes), {})
      .fits();
}

Report simulated(const Candidate& candidate, const PredictionRequest& request) {
  Experiment experiment = request.read(candidate.scenario, candidate.place, Profiles::read);
  experiment.engine = request.engine;
  experiment.with_reserved = false;
  return run_iteration(experiment).report;
}

Band band_of(double seconds, double uncertainty) {
  return {seconds * std::max(0.0, 1 - uncertainty), seconds * (1 + uncertainty)};
}

void predict_seconds(const Candidate& candidate, const PredictionRequest& request,
                     RunPrediction& prediction) {
  const Report report = simulated(candidate, request);
  prediction.seconds = report.step_time_s;
  prediction.fits = memory_verdict(report).fits();
  prediction.uncertainty = report.uncertainty;
  prediction.launch_bound_share = report.facts.launch_bound_share;
  prediction.under_fsdp = traits(report.plan).fsdp != Fsdp::none;
  prediction.has_experts = report.model.experts.has_value();
  prediction.gpu = report.facts.gpu_name;
  prediction.band = band_of(report.step_time_s, report.uncertainty);
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The error that ends `predict`; "" without one.
template <typename Predict>
std::string attempt(const Predict& predict) {
  try {
    predict();
    return "";
  } catch (const std::exception& error) {
    return first_line(error.what());
  }
}

// The result that a process for one run sends to the program.
Json write_prediction(const RunPrediction& prediction) {
  return {{"seconds", or_null(prediction.seconds)},
          {"uncertainty", prediction.uncertainty},
          {"launch_bound_share", prediction.launch_bound_share},
          {"under_fsdp", prediction.under_fsdp},
          {"has_experts", prediction.has_experts},
          {"gpu", prediction.gpu},
          {"band", prediction.band ? Json({prediction.band->low, prediction.band->high}) : Json()},
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
  prediction.launch_bound_share = *number("launch_bound_share");
  prediction.under_fsdp = row.report["under_fsdp"].get<bool>();
  prediction.has_experts = row.report["has_experts"].get<bool>();
  prediction.gpu = row.report["gpu"].get<std::string>();
  if (const Json& band = row.report["band"]; band.is_array()) prediction.band = Band{band[0], band[1]};
  prediction.memory_bytes = number("memory_bytes");
  if (row.report["fits"].is_boolean()) prediction.fits = row.report["fits"].get<bool>();
  prediction.skipped = row.report["skipped"];
}

}  // namespace

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

double relative_error(double predicted, double measured) {
  return predicted / measured - 1;
}

double time_error(const RunPrediction& prediction) {
  return relative_error(*prediction.seconds, *prediction.run.measured_s);
}

bool is_inside(const RunPrediction& prediction) {
  const double measured = *prediction.run.measured_s;
  return prediction.band->low <= measured && measured <= prediction.band->high;
}

namespace {

void add_error(TimeErrors& errors, const PublishedRun& run, const std::optional<double>& seconds) {
  if (!seconds || !run.measured_s) return;
  const double error = relative_error(*seconds, *run.measured_s);
  errors.all.push_back(error);
  errors.by_family[run.family].push_back(error);
  if (run.core) errors.core.push_back(error);
}

}  // namespace

PredictionErrors errors_of(const std::vector<RunPrediction>& predictions) {
  PredictionErrors errors;
  for (const RunPrediction& each : predictions) {
    if (each.fits && (each.run.out_of_memory || each.run.measured_s)) {
      Share& of = each.run.out_of_memory ? errors.out_of_memory : errors.ran;
      of.n += *each.fits ? 1 : 0;
      ++of.of;
    }
    if (each.memory_bytes && each.run.memory_bytes)
      errors.memory.push_back(relative_error(*each.memory_bytes, *each.run.memory_bytes));
    if (each.band && each.run.measured_s) {
      errors.inside.n += is_inside(each) ? 1 : 0;
      ++errors.inside.of;
    }
    add_error(errors.full, each.run, each.seconds);
    add_error(errors.as_stated, each.run, each.as_stated_s);
  }
  return errors;
}

namespace {

RunPrediction predict(const PublishedRun& run, const Candidate& candidate, const PredictionRequest& request) {
  RunPrediction prediction;
  const bool whole = run.missing.empty();
  if (whole && run.memory_bytes) attempt([&] { prediction.memory_bytes = predicted_memory(run, request); });
  if (!whole || run.out_of_memory) {
    prediction.skipped = attempt([&] { prediction.fits = predicted_to_fit(candidate, request); });
    if (prediction.skipped.empty() && run.out_of_memory) prediction.skipped = "ran out of memory";
    if (run.out_of_memory || prediction.fits != true) return prediction;  // runs that ran did fit
  }
  prediction.skipped = attempt([&] { predict_seconds(candidate, request, prediction); });
  return prediction;
}

RunPrediction predict_as_stated(const PublishedRun& run, const PredictionRequest& request) {
  RunPrediction prediction;
  prediction.skipped = attempt([&] { predict_seconds({*run.as_stated, run.place}, request, prediction); });
  return prediction;
}

// Widens the interval by another possible setting of the run.
void widen(std::optional<Band>& band, const Band& other) {
  if (!band) band = other;
  band->low = std::min(band->low, other.low);
  band->high = std::max(band->high, other.high);
}

struct Task {
  std::size_t run;
  const Json* scenario;
  bool as_stated;
};

std::vector<Task> tasks_of(const std::vector<PublishedRun>& runs, bool as_stated) {
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PublishedRun& run = runs[i];
    if (run.missing.empty() || run.measured_s)
      for (const Json& candidate : run.candidates) tasks.push_back({i, &candidate, false});
    if (as_stated && run.as_stated && *run.as_stated != run.scenario && !run.out_of_memory)
      tasks.push_back({i, &*run.as_stated, true});
  }
  return tasks;
}

void take(const Task& task, const Row& row, RunPrediction& of, std::string& refusal) {
  RunPrediction one;
  const bool open = !of.run.missing.empty();
  read_prediction(row, open || task.as_stated ? one : of);
  if (task.as_stated) {
    of.as_stated_s = one.seconds;
    of.skipped_as_stated = one.skipped;
  } else if (one.band) {
    widen(of.band, *one.band);
  } else if (open) {
    refusal = one.skipped;
  }
}

// For runs whose stated switches are all switches, or without any prediction as stated.
void copy_as_stated(RunPrediction& each) {
  if (each.run.as_stated && *each.run.as_stated == each.run.scenario) each.as_stated_s = each.seconds;
  if (!each.as_stated_s && each.skipped_as_stated.empty()) each.skipped_as_stated = each.skipped;
}

}  // namespace

std::vector<RunPrediction> predict(const std::vector<PublishedRun>& runs, const PredictionRequest& request) {
  std::vector<RunPrediction> predictions;
  for (const PublishedRun& run : runs) predictions.push_back({.run = run});
  for (RunPrediction& each : predictions)
    if (!each.run.missing.empty()) each.skipped = "the source does not say: " + each.run.missing;
  const std::vector<Task> tasks = tasks_of(runs, request.as_stated);
  const NextPoint points = first_points(static_cast<Point>(tasks.size()));
  const Evaluate evaluate = [&](Point i) {
    const Task& task = tasks[static_cast<std::size_t>(i)];
    const PublishedRun& run = runs[task.run];
    return Row{RowState::done, "",
               write_prediction(task.as_stated ? predict_as_stated(run, request)
                                               : predict(run, {*task.scenario, run.place}, request))};
  };
  std::vector<std::string> refusals(runs.size());
  const Deliver deliver = [&](Point i, const Row& row) {
    const Task& task = tasks[static_cast<std::size_t>(i)];
    take(task, row, predictions[task.run], refusals[task.run]);
    request.done(tasks.size());
  };
  const auto never = [] { return false; };
  if (request.engine == Engine::simgrid)
    run_in_processes(points, evaluate, request.jobs, never, deliver);
  else
    run_in_threads(points, evaluate, request.jobs, never, deliver);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    RunPrediction& each = predictions[i];
    if (!each.band && !refusals[i].empty()) each.skipped += "; " + refusals[i];
    if (request.as_stated) copy_as_stated(each);
  }
  return predictions;
}

}  // namespace rehearse
