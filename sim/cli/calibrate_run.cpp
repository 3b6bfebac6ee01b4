#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/interruption.h"
#include "base/say.h"
#include "calibrate/import/profile_json.h"
#include "calibrate/timing/calibration.h"
#include "calibrate/timing/coverage.h"
#include "calibrate/timing/grid.h"
#include "calibrate/timing/placements.h"
#include "calibrate/timing/profile_file.h"
#include "cli/calibrate.h"
#include "cli/output.h"
#include "cli/same_job.h"
#include "cli/verbs.h"
#include "execute/device_set.h"
#include "kernels/communicate/launched.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

struct CalibrateOptions {
  GivenFlags given;
  std::string device = "cpu";
  std::string output;
  std::string cache = "cold";
  double seconds = 0.3;
  std::int64_t grid_hidden = 2048;
  int parts = 1;
  double timeout_s = 120;
  bool grid = false;
  bool fresh = false;
  bool on_cpu() const { return device == "cpu"; }
};

// Largest message of a grid.
constexpr double kLargestOnCpu = 64.0 * (1 << 20), kLargestOnGpu = 1 << 30;

std::string given_or(const GivenFlags& given, const std::string& flag, const std::string& otherwise) {
  const auto found = given.values.find(flag);
  return found == given.values.end() ? otherwise : found->second;
}

// A profile must not hold times of one precision under the name of another.
void require_timed(const CalibrateOptions& options, const Gpu& gpu, Precision precision) {
  const std::string found = "precision = " + to_string(precision);
  const bool in_fp8 = precision == Precision::fp8;
  if (options.on_cpu() && precision != Precision::fp32)
    throw InputError({"command line", "--precision",
                      in_fp8 ? "the CPU has no fp8 GEMMs: only fp32 can be timed on it"
                             : "the CPU emulates 16-bit numbers: only fp32 can be timed on it",
                      found, "--precision fp32"});
  if (!support_of_gemm(precision).timed)
    throw InputError({"command line", "--precision", to_string(precision) + " GEMMs cannot be timed yet",
                      found, "--precision fp8"});
  if (in_fp8 && !gpu.peak_flops.contains("fp8"))
    throw InputError({"command line", "--precision",
                      gpu.name + " states no fp8 peak: its tensor cores have no fp8 GEMMs", found,
                      "--precision bf16"});
}

Precision precision_of_grid(const CalibrateOptions& options) {
  const std::string given = given_or(options.given, "--precision", options.on_cpu() ? "fp32" : "bf16");
  std::vector<std::string> names;
  for (const Precision precision : kPrecisions) {
    if (!support_of_gemm(precision).timed) continue;
    if (to_string(precision) == given) return precision;
    names.push_back(to_string(precision));
  }
  throw InputError(
      {"command line", "--precision", "a grid is of one of " + join(names), "precision = " + given, "bf16"});
}

// The grid needs a cluster only; anything else a whole scenario.
CalibrationRequest make_request(const CalibrateOptions& options) {
  CalibrationRequest request;
  request.cache = options.cache == "cold" ? Cache::cold : Cache::warm;
  request.budget_s = options.seconds;
  if (options.grid && options.given.file.empty() && !options.given.values.contains("--model")) {
    const bool on_cpu = options.on_cpu();
    request.cluster = read_cluster(given_or(options.given, "--cluster", on_cpu ? "cpu-node" : "dgx-h100"));
    const Precision precision = precision_of_grid(options);
    require_timed(options, request.cluster.gpu, precision);
    request.jobs = grid_jobs(precision, options.grid_hidden);
    if (kernels::launched().size > 1)
      request.jobs.messages = message_sweep(on_cpu ? kLargestOnCpu : kLargestOnGpu);
    return request;
  }
  const Scenario scenario = read_scenario(collect(options.given));
  require_timed(options, scenario.experiment.cluster.gpu, scenario.experiment.plan.precision);
  request.cluster = scenario.experiment.cluster;
  request.jobs = jobs_of(scenario.experiment.model, scenario.experiment.plan);
  return request;
}

// Opens started processes, partitions of a GPU, or one device alone (no worlds).
DeviceSet open_here(const CalibrateOptions& options, const CalibrationRequest& request) {
  const DeviceKind kind = options.on_cpu() ? DeviceKind::cpu : DeviceKind::cuda;
  try {
    if (kernels::launched().size > 1)
      return open_process(kind, options.timeout_s,
                          job_of_messages(options.device, request.jobs, options.seconds));
    if (options.parts > 1) return parts_of_gpu(options.parts);
    return one_device(kind);
  } catch (const kernels::DeviceMissing& missing) {
    throw MissingCalibration(missing.what());
  }
}

// The profile in the output file, or a profile without samples.
Profile profile_to_continue(const CalibrateOptions& options, const CalibrationRequest& request,
                            const kernels::DeviceFacts& facts) {
  if (!options.fresh && std::filesystem::exists(options.output)) {
    Profile profile = read_profile(as_path(options.output));
    const bool same = profile.measurement && profile.measurement->device == facts.name &&
                      profile.measurement->cores == facts.cores &&
                      profile.measurement->cache == options.cache &&
                      profile.gpu.name == request.cluster.gpu.name;
    if (!same)
      throw InputError({options.output, "/measurement",
                        "a profile can be continued only on the device that it was measured on",
                        fmt::format("device {} ({}), cache {}", facts.name, facts.cores, options.cache),
                        "--fresh to replace it"});
    return profile;
  }
  Profile profile;
  profile.name = std::filesystem::path(options.output).stem().string();
  profile.gpu = request.cluster.gpu;
  profile.how = How::measured;
  profile.sources = {{"rehearse calibrate", "", "measured on " + facts.name}};
  return profile;
}

void show_progress(const std::string& job, std::size_t done, std::size_t all, double left_s) {
  const auto left = static_cast<long>(left_s);
  print_talk(fmt::format("\r\033[K[{}/{}] {:02}:{:02} left  {}", done + 1, all, left / 60, left % 60, job));
}

void print_result(const Calibration& done, const Cluster& cluster, double took_s) {
  say("{} timings in {:.0f} s ({} already known)\n", done.measured, took_s, done.known);
  for (const TableSummary& table : summarise(done.profile)) {
    const std::string rate = table.counts_flops ? fmt::format("{:.1f} GFLOP/s", table.best_rate * 1e-9)
                                                : fmt::format("{:.1f} GB/s", table.best_rate * 1e-9);
    say("  {:<32} {:>4} samples, best {:>14}, widest spread {:.0f} %\n", table.name, table.samples, rate,
        100 * table.widest_spread);
  }
  for (const auto& [precision, peak] : cluster.gpu.peak_flops)
    say("  peak {} of {}: {:.1f} GFLOP/s\n", precision, cluster.gpu.name, peak * 1e-9);
  for (const std::string& note : done.notes) say(stderr, "note: {}\n", note);
}

void require_options(const CalibrateOptions& options) {
  if (options.output.empty())
    throw InputError({"command line", "-o", "is required: the file of the profile", "", "-o PROFILE.json"});
  require_file("-o", options.output);
  if (options.parts > 1 && (options.on_cpu() || kernels::launched().size > 1))
    throw InputError({"command line", "--parts", "works only for the threads of one process on one GPU",
                      fmt::format("--parts {} with --device {}", options.parts, options.device),
                      "--device cuda without a launcher"});
}

// For processes other than the first: takes part in its messages.
int take_part(const CalibrationRequest& request, kernels::Device& device) {
  Profile nothing;
  return calibrate(device, request, std::move(nothing)).complete ? kDone : kInterrupted;
}

int calibrate_here(const CalibrateOptions& options, CalibrationRequest& request, kernels::Device& device) {
  Profile profile = profile_to_continue(options, request, device.facts());
  const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) request.progress = show_progress;
  request.save = [&](const Profile& partial) {
    replace_file(options.output,
                 [&](std::ostream& out) { out << to_text(profile_json(partial, request.cluster.gpu)); });
  };
  const auto begin = std::chrono::steady_clock::now();
  const Calibration done = calibrate(device, request, std::move(profile));
  if (terminal) print_talk("\r\033[K");
  for (const std::string& line : done.above_peak) say(stderr, "rehearse: above peak: {}\n", line);
  if (!done.above_peak.empty()) return kFailure;
  print_result(done, request.cluster,
               std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  if (done.complete) return kDone;
  say(stderr, "rehearse: interrupted; the same command continues {}\n", options.output);
  return kInterrupted;
}

int calibrate_and_write(const CalibrateOptions& options) {
  require_options(options);
  require_apart({options.given.file, options.output}, Reads::allowed);
  const kernels::Launched self = kernels::launched();
  if (self.rank == 0) require_writable({options.output});
  CalibrationRequest request = make_request(options);
  DeviceSet device_set = open_here(options, request);
  const Ranks ranks{std::move(device_set.devices), std::move(device_set.worlds), self.size > 1};
  if (!ranks.worlds.empty()) {
    request.ranks = &ranks;
  } else if (!options.on_cpu() && !request.jobs.messages.empty()) {
    say(stderr,
        "note: messages between GPUs are timed under mpirun, srun or torchrun, one process a GPU; nccl-tests "
        "logs can be imported with calibrate import\n");
    request.jobs.messages.clear();
  }
  note_interruption();
  request.stopped = is_interrupted;
  request.timeout_s = options.timeout_s;
  return self.rank == 0 ? calibrate_here(options, request, ranks.device(0))
                        : take_part(request, ranks.device(0));
}

}  // namespace

Verb calibrate_run_verb() {
  const auto options = std::make_shared<CalibrateOptions>();
  Verb verb{"calibrate", "measure the kernels and messages of a device into a profile"};
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--device"},
            .target = &options->device,
            .help = "device to measure",
            .value = "cpu|cuda",
            .words = {"cpu", "cuda"}});
  verb.add({{"-o", "--output"},
            &options->output,
            "profile to write; an existing one is continued",
            "PROFILE.json"});
  verb.add({{"--grid"},
            &options->grid,
            "time layers of many sizes, for any scenario; --precision sets their precision"});
  verb.add({.names = {"--grid-hidden"},
            .target = &options->grid_hidden,
            .help = "widest layer of the grid",
            .value = "N",
            .bounds = {{256, 65536}}});
  verb.add({.names = {"--cache"},
            .target = &options->cache,
            .help = "operands in memory (cold), or in cache from the last run (warm)",
            .value = "cold|warm",
            .words = {"cold", "warm"}});
  verb.add({.names = {"--seconds"},
            .target = &options->seconds,
            .help = "seconds to time each kernel and message",
            .value = "S",
            .bounds = {{0.001, 600}}});
  verb.add({.names = {"--parts"},
            .target = &options->parts,
            .help = "time on one of N equal parts of a GPU's SMs",
            .value = "N",
            .bounds = {{1, 64}}});
  verb.add({.names = {"--timeout"},
            .target = &options->timeout_s,
            .help = "timeout in seconds for other processes and for messages",
            .value = "S",
            .bounds = {{0.001, 86400}}});
  verb.add({{"--fresh"}, &options->fresh, "replace PROFILE.json instead of continuing it"});
  verb.footer =
      "Examples:\n"
      "  rehearse calibrate scenario.json --device cpu -o my-cpu.json\n"
      "  rehearse calibrate --grid --device cpu -o my-cpu.json\n"
      "  rehearse calibrate --grid --grid-hidden 8192 --device cuda --precision fp8 -o my-gpu.json\n"
      "  mpirun -n 16 rehearse calibrate scenario.json --device cuda -o my-gpus.json\n"
      "  rehearse calibrate show my-cpu.json --svg rates.svg\n"
      "  rehearse calibrate diff my-cpu.json other.json";
  verb.run = [options] { return calibrate_and_write(*options); };
  return verb;
}

}  // namespace rehearse
