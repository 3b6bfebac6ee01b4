#include "execute/execute.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#include "base/interruption.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/execute_predict.h"
#include "cli/loss_scale_flags.h"
#include "cli/output.h"
#include "cli/same_job.h"
#include "cli/show_run.h"
#include "cli/verbs.h"
#include "cost/communicators.h"
#include "execute/batch.h"
#include "kernels/communicate/launched.h"
#include "result/chrome_trace.h"
#include "run/iteration.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

constexpr int kUsualIterations = 5;

struct ExecuteVerb {
  GivenFlags given;
  ShowOptions show;
  PredictOptions predict;
  LossScaleFlags loss_scale;
  std::string device = "cpu";
  int warmup = 2;
  double timeout_s = 60;
  std::string data;  // a text to train on
};

DeviceKind kind_of(const ExecuteVerb& verb) {
  return verb.device == "cuda" ? DeviceKind::cuda : DeviceKind::cpu;
}

// Throws unless the plan can run here under the requested conditions.
void require_executable(const Experiment& experiment, const ScenarioSource& source) {
  std::vector<Violation> found = not_executable(experiment.model, experiment.plan);
  for (Violation& violation : found)
    violation.pointer = (violation.pointer == "model" ? "/" : "/plan/") + violation.pointer;
  const Conditions& conditions = experiment.conditions;
  if (!conditions.slow.empty())
    found.push_back({"", "/slow", "execute cannot slow down ranks or links", "slow ranks or links", "none"});
  if (conditions.has_jitter())
    found.push_back({"", "/jitter", "execute has real jitter and cannot simulate it", "jitter", "none"});
  if (!experiment.stage_nodes.empty())
    found.push_back({"", "/stage_nodes", "execute supports one kind of node", "stage nodes", "none"});
  if (found.empty()) return;
  for (Violation& violation : found) {
    violation = in_users_words(std::move(violation), source);
    if (!violation.nearest.empty()) violation.nearest += " (for this rule)";
  }
  throw InputError(std::move(found));
}

bool is_emulated(const ExecuteVerb& verb, Precision precision) {
  return kind_of(verb) == DeviceKind::cpu && precision != Precision::fp32;
}

// Emulated precisions compute in fp32. They use fp32's peak and GEMM times where cluster and profile have no
// others.
void emulate(Experiment& experiment) {
  const std::string wide = to_string(Precision::fp32), narrow = to_string(experiment.plan.precision);
  for (Gpu* gpu : {&experiment.cluster.gpu, &experiment.profile.gpu}) {
    std::map<std::string, double>& peaks = gpu->peak_flops;
    if (const auto peak = peaks.find(wide); peak != peaks.end()) peaks.emplace(narrow, peak->second);
  }
  const auto products = experiment.profile.gemm;
  for (const auto& [kind, samples] : products)
    if (kind.starts_with(wide)) experiment.profile.gemm.emplace(narrow + kind.substr(wide.size()), samples);
}

// Emulated kernels cannot be timed.
void require_timed(const ExecuteVerb& verb, Precision precision) {
  if (!is_emulated(verb, precision)) return;
  throw InputError({"", "--predict", "the CPU emulates 16-bit numbers: only fp32 can be timed on it",
                    fmt::format("--device cpu, precision = {}", to_string(precision)),
                    "--precision fp32, or no --predict"});
}

// Ranks share the memory of a CPU, and of a GPU that they divide. In the latter case they share one context.
void require_memory(const Report& predicted, const Cluster& cluster, const DeviceSet& device_set) {
  const kernels::DeviceFacts device = device_set.devices.front()->facts();
  const bool is_cpu = device.kind == "cpu", shared = is_cpu || device_set.devices.size() > 1;
  Footprint needed = fullest_gpu(predicted);
  needed.capacity_bytes = device.memory_bytes;
  if (is_cpu) needed.outside = {};
  if (shared) {
    needed.outside.communicators.clear();
    if (are_parts_of_one_gpu(cluster)) needed.outside.context_bytes *= cluster.node.gpus;
    needed.peak_bytes = 0;
    for (const RankMemory& rank : predicted.memory)
      needed.peak_bytes += rank.peak_bytes * predicted.plan.gpus() / predicted.plan.pp;
  }
  if (!memory_verdict({needed}, {}).fits())
    throw DoesNotFit(fmt::format("{} need {} ({}); this {} has {}",
                                 shared ? fmt::format("{} ranks together", predicted.plan.gpus()) : "a rank",
                                 format_bytes(needed.needed_bytes()), parts_in_words(needed),
                                 is_cpu ? "machine" : "GPU", format_bytes(device.memory_bytes)));
}

// Kernels must be timed on an otherwise idle machine.
void require_alone() {
  if (const kernels::Launched by = kernels::launched(); by.size > 1)
    throw InputError({"", "--predict", "times kernels in one process before it executes",
                      fmt::format("{} processes under {}", by.size, by.launcher), "without " + by.launcher});
}

// Data that every process prepares before it runs.
struct Prepared {
  Json source;
  Scenario scenario;
  Iteration predicted;
  Training training;
};

Prepared prepare_run(const ExecuteVerb& verb, const ScenarioSource& source) {
  Scenario scenario = read_scenario(source);
  Experiment& experiment = scenario.experiment;
  require_executable(experiment, source);
  const int iterations = experiment.conditions.iterations;
  experiment.conditions.iterations = 1;
  const Precision precision = experiment.plan.precision;
  if (is_emulated(verb, precision)) emulate(experiment);
  if (!verb.predict.wanted) {
    experiment.engine = Engine::reference;
  } else {
    require_timed(verb, precision);
    require_alone();
    note_interruption();
    if (!calibrate_missing(experiment, verb.predict, kind_of(verb), is_interrupted))
      throw Interrupted("interrupted while kernels and messages were timed");
  }
  experiment.every_microbatch = true;
  Iteration predicted = run_iteration(experiment);
  experiment.conditions.iterations = source.json.contains("iterations") ? iterations : kUsualIterations;
  const Preparation& ready = predicted.preparation;
  Training training{experiment.model, experiment.plan, ready.work, ready.schedule,
                    experiment.conditions.seed};
  training.loss_scaling = loss_scaling_of(verb.loss_scale, experiment.plan);
  if (!verb.data.empty())
    training.text =
        read_text(verb.data, experiment.model.vocab, tokens_of_sequence(experiment.model, experiment.plan));
  return {source.json, std::move(scenario), std::move(predicted), std::move(training)};
}

Report report_of(const ExecuteVerb& verb, const Prepared& run, const Schedule& schedule,
                 const Timeline& timeline, const std::string& warning = "") {
  RunFacts facts = run.predicted.report.facts;
  if (!warning.empty()) facts.warnings.push_back(warning);
  facts.source = "execute";
  facts.engine = verb.device;
  const unsigned cores = std::thread::hardware_concurrency();
  const int ranks = run.training.plan.gpus();
  if (kind_of(verb) == DeviceKind::cpu && ranks > static_cast<int>(cores))
    facts.warnings.push_back(
        fmt::format("{} ranks share {} cores: times are longer than with one core per rank", ranks, cores));
  if (is_emulated(verb, run.training.plan.precision))
    facts.warnings.push_back(fmt::format("the CPU emulates {}: losses and memory are valid, times are not",
                                         to_string(run.training.plan.precision)));
  facts.warnings.emplace_back(
      "memory is predicted, not measured; the profile splits the time of a compute op by cause");
  if (run.training.model.experts)
    facts.warnings.emplace_back(
        "routing is round-robin, so that all experts receive equal loads; router scores only weight the "
        "outputs");
  facts.warnings.insert(facts.warnings.end(), run.scenario.notes.begin(), run.scenario.notes.end());
  const Preparation& ready = run.predicted.preparation;
  const Plan& plan = run.training.plan;
  // Tasks of the whole schedule, also where the timeline is truncated: ops keep their index.
  const Tasks tasks = derive_tasks(run.training.schedule, plan, {Fold::none, plan.one_queue, false});
  return make_report(timeline, schedule, tasks, run.training.model, plan, ready.work, ready.prices.times,
                     facts);
}

// A trace of the ops that ended before the run failed. Each process writes its own, as rank 0 may be gone.
void keep_partial(const ExecuteVerb& verb, const Prepared& run, int rank, const PartialRun& partial) {
  if (verb.show.trace.empty() || partial.timeline.ranks.empty()) return;
  const std::string file = rank == 0 ? verb.show.trace : fmt::format("{}.rank{}", verb.show.trace, rank);
  const Report report = report_of(verb, run, partial.schedule, partial.timeline);
  write_file(file, [&](std::ostream& out) {
    write_chrome_trace(out, partial.timeline, partial.schedule, report, run.training.work);
  });
  say(stderr, "rehearse: the finished ops are kept in {}\n", file);
}

int show(const ExecuteVerb& verb, const Prepared& run, const Execution& execution, const std::string& how) {
  const Report report = report_of(verb, run, run.training.schedule, execution.timeline,
                                  skipped_warning(execution, verb.warmup));
  Json facts = {{"losses", execution.losses},
                {"step_times_s", execution.step_times_s},
                {"peak_activation_bytes_by_rank", execution.peak_activation_bytes},
                {"ranks", how},
                {"clocks", execution.clocks},
                {"clock_error_s", execution.clock_error_s},
                {"tracing_s", execution.tracing_s}};
  if (!execution.gradient_norms.empty()) facts["gradient_norms"] = execution.gradient_norms;
  if (!execution.loss_scales.empty()) {
    facts["loss_scales"] = execution.loss_scales;
    facts["skipped_steps"] = execution.skipped_steps;
  }
  std::string lines =
      fmt::format("loss {:.4f} in the first step, {:.4f} in the last of {}; predicted step time {}\n",
                  execution.losses.front(), execution.losses.back(), execution.losses.size(),
                  format_seconds(run.predicted.report.step_time_s));
  lines += loss_scale_line(execution);
  if (!verb.data.empty()) {
    lines +=
        fmt::format("trained on {}: {} bytes, one token per byte\n", verb.data, run.training.text.size());
    facts["data"] = {{"file", verb.data}, {"tokens", run.training.text.size()}};
  }
  lines += fmt::format("{}; timing overhead is {:.2g} % of the step", how,
                       100 * execution.tracing_s / report.step_time_s);
  if (execution.clock_error_s > 0)
    lines += fmt::format(", clocks of ranks agree within {} ({})", format_seconds(execution.clock_error_s),
                         execution.clocks);
  lines += "\n";
  const Shown shown{execution.timeline,     run.training.schedule,
                    run.training.work,      report,
                    execution.step_times_s, run.source};
  const Json more = {{"execution", facts}};
  if (verb.predict.wanted) return show_predicted(verb.show, verb.predict, run.predicted, shown, more);
  show_run(verb.show, shown, more, lines);
  return kDone;
}

[[noreturn]] void end_stuck(const std::string& reason) {
  say(stderr, "rehearse: {}; a rank does not stop, so the program ends\n", reason);
  std::_Exit(is_interrupted() ? kInterrupted : kFailure);
}

// Called before the run. A profile to be continued was read earlier.
void require_outputs(const ExecuteVerb& verb) {
  const ShowOptions& show = verb.show;
  const std::string& profile = verb.predict.profile_out;
  require_file("--profile-out", profile);
  require_apart({show.trace, show.svg, show.png, show.html, profile});
  for (const std::string& input : {verb.given.file, verb.data})
    require_apart({input, profile}, Reads::allowed);
  require_writable(show);
}

kernels::Job job_of_ranks(const ExecuteVerb& verb, const Prepared& run) {
  if (kernels::launched().size == 1) return {};
  return job_of({run.training, run.predicted.report, verb.device, verb.data, verb.warmup,
                 run.scenario.experiment.conditions.iterations});
}

int run_and_show(const ExecuteVerb& verb) {
  const ScenarioSource source = collect(verb.given);
  require_outputs(verb);
  if (kind_of(verb) == DeviceKind::cuda) kernels::count_gpus();  // throws where this build has no CUDA
  const Prepared run = prepare_run(verb, source);
  const Plan& plan = run.training.plan;
  DeviceSet device_set;
  try {
    device_set = open_device_set(plan, kind_of(verb), verb.timeout_s, job_of_ranks(verb, run));
  } catch (InputError& error) {
    std::vector<Violation> found = error.violations();
    for (Violation& violation : found) violation = in_users_words(std::move(violation), source);
    throw InputError(std::move(found));
  }
  const bool is_first = device_set.is_first();
  const std::string how = device_set.how;
  if (is_first) require_memory(run.predicted.report, run.scenario.experiment.cluster, device_set);
  ExecuteOptions options;
  options.warmup = verb.warmup;
  options.iterations = run.scenario.experiment.conditions.iterations;
  options.watch = {verb.timeout_s, is_interrupted, end_stuck};
  const int rank = device_set.worlds.front()->rank();
  options.keep_partial = [&](const PartialRun& partial) { keep_partial(verb, run, rank, partial); };
  note_interruption();
  const Execution execution = execute(run.training, options, std::move(device_set));
  return is_first ? show(verb, run, execution, how) : kDone;
}

int execute_and_show(const ExecuteVerb& verb) {
  try {
    return run_and_show(verb);
  } catch (const kernels::DeviceMissing& missing) {
    throw MissingCalibration(missing.what());
  } catch (const kernels::OutOfMemory& memory) {
    throw DoesNotFit(memory.what());
  } catch (const Interrupted& end) {
    say(stderr, "rehearse: {}\n", end.what());
    return kInterrupted;
  }
}

}  // namespace

Verb execute_verb() {
  const auto options = std::make_shared<ExecuteVerb>();
  Verb verb{"execute", "run the same schedule on hardware: a real training run"};
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--device"},
            .target = &options->device,
            .help = "device: CPU cores; GPUs, one per rank, or parts of one GPU in one process",
            .value = "cpu|cuda",
            .words = {"cpu", "cuda"}});
  verb.add({.names = {"--warmup"},
            .target = &options->warmup,
            .help = "warm-up steps before the measured --iterations (5)",
            .value = "N",
            .bounds = {{0, 1000000}}});
  verb.add({.names = {"--timeout"},
            .target = &options->timeout_s,
            .help = "timeout in seconds: end the run when no op finishes",
            .value = "S",
            .bounds = {{0.001, 86400}}});
  verb.add({{"--data"},
            &options->data,
            "text to train on, one token per byte; default: random tokens from --seed",
            "FILE"});
  verb.add_all(loss_scale_options(options->loss_scale));
  verb.add_all(predict_options(options->predict));
  verb.add_all(show_options(options->show));
  verb.footer =
      "Examples:\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --device cpu\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --schedule gpipe --iterations 10 --svg gpipe.svg\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --pp 1 --tp 2 --sequence-parallel on --json\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --predict --svg both.svg --fail-above 20%\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --data README.md --clip-grad 1\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --precision bf16 --recipe zero\n"
      "  rehearse execute scenarios/gpt-10m-2-cores.json --precision fp16 --initial-loss-scale 65536\n"
      "  rehearse execute scenarios/mixtral-8x10m-2-cores.json --ep 2 --iterations 10\n"
      "  mpirun -n 2 rehearse execute scenarios/gpt-10m-2-cores.json --trace executed.json\n"
      "  torchrun --no-python --nproc-per-node 2 rehearse execute scenarios/gpt-10m-2-cores.json\n"
      "Routing is round-robin, not by router score: all experts receive equal loads.\n"
      "Under torchrun, mpirun or srun every rank is a process; rank 0 reports. Ranks that run\n"
      "different jobs stop and print the difference. When a rank dies, hangs or runs out of memory, all "
      "ranks end\n"
      "within --timeout and a few seconds, and each keeps its part of the --trace.";
  verb.run = [options] { return execute_and_show(*options); };
  return verb;
}

}  // namespace rehearse
