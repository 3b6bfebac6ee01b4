#include "cli/execute_predict.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "base/say.h"
#include "calibrate/import/profile_json.h"
#include "calibrate/timing/calibration.h"
#include "calibrate/timing/profile_file.h"
#include "cli/output.h"
#include "cli/show_comparison.h"
#include "result/chrome_trace.h"
#include "result/report_json.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxNotes = 3;

bool is_of(const Profile& profile, const kernels::DeviceFacts& device) {
  return profile.measurement && profile.measurement->device == device.name &&
         profile.measurement->cores == device.cores;
}

Profile profile_to_continue(const Experiment& experiment, const PredictOptions& options,
                            const kernels::DeviceFacts& device) {
  if (!options.fresh && !options.profile_out.empty() && std::filesystem::exists(options.profile_out)) {
    Profile kept = read_profile(as_path(options.profile_out));
    if (!is_of(kept, device))
      throw InputError({options.profile_out, "/measurement/device",
                        "a profile can be continued only on the device that it was measured on",
                        fmt::format("this is {} of {}", device.cores, device.name), "another file"});
    return kept;
  }
  if (!options.fresh && is_of(experiment.profile, device)) return experiment.profile;
  if (!options.fresh)
    say(stderr, "note: profile {} was not measured on this {}: everything is timed here\n",
        experiment.profile.name, device.name);
  Profile fresh;
  fresh.name = "timed-here";
  fresh.gpu = experiment.cluster.gpu;
  fresh.how = How::measured;
  fresh.sources = {{"rehearse execute --predict", "", "measured on " + device.name}};
  return fresh;
}

Side side_of(const std::string& name, const Timeline& timeline, const Schedule& schedule,
             const Report& report, const Work& work, const Json& more) {
  std::ostringstream trace;
  write_chrome_trace(trace, timeline, schedule, report, work);
  Json json = Json::parse(write_report_json(report, REHEARSE_VERSION));
  json.update(more);
  return {name, json, RecordedRun{timeline, schedule, json}, Json::parse(trace.str())};
}

}  // namespace

std::vector<VerbOption> predict_options(PredictOptions& options) {
  std::vector<VerbOption> all = {
      {{"--profile-out"},
       &options.profile_out,
       "with --predict: write the timed profile; an existing one is continued",
       "PROFILE.json"},
      {{"--fresh"}, &options.fresh, "with --predict: time everything here and ignore the profile"},
      {.names = {"--calibrate-seconds"},
       .target = &options.seconds,
       .help = "with --predict: seconds to time each kernel and message",
       .value = "S",
       .bounds = {{0.001, 600}}},
      gates_option(options.fail_above, "with --predict: exit with 5 as compare does")};
  for (VerbOption& option : all) option.needs = "--predict";
  all.insert(all.begin(),
             {{"--predict"},
              &options.wanted,
              "time missing profile entries, simulate, execute and compare; A is the prediction"});
  return all;
}

bool calibrate_missing(Experiment& experiment, const PredictOptions& options, DeviceKind device,
                       const std::function<bool()>& stopped) {
  // Where ranks are threads on cores, the times of one core serve for all.
  DeviceSet device_set =
      device == DeviceKind::cuda ? open_device_set(experiment.plan, device, 0) : one_device(device);
  const Ranks ranks{std::move(device_set.devices), std::move(device_set.worlds), false};
  CalibrationRequest request;
  if (!ranks.worlds.empty()) request.ranks = &ranks;
  request.cluster = experiment.cluster;
  request.jobs = jobs_of(experiment.model, experiment.plan);
  request.budget_s = options.seconds;
  request.stopped = stopped;
  request.save = [&](const Profile& profile) {
    if (options.profile_out.empty()) return;
    replace_file(options.profile_out,
                 [&](std::ostream& out) { out << to_text(profile_json(profile, request.cluster.gpu)); });
  };
  kernels::Device& here = ranks.device(0);
  Calibration done = calibrate(here, request, profile_to_continue(experiment, options, here.facts()));
  say(stderr, "{} kernels and messages timed, {} already known\n", done.measured, done.known);
  for (std::size_t i = 0; i < std::min(done.notes.size(), kMaxNotes); ++i)
    say(stderr, "note: {}\n", done.notes[i]);
  if (done.notes.size() > kMaxNotes)
    say(stderr, "note: and {} more like it: was the machine busy?\n", done.notes.size() - kMaxNotes);
  for (const std::string& line : done.above_peak) say(stderr, "note: above peak: {}\n", line);
  experiment.profile = std::move(done.profile);
  return done.complete;
}

int show_predicted(const ShowOptions& show, const PredictOptions& options, const Iteration& predicted,
                   const Shown& executed, const Json& more) {
  const Preparation& ready = predicted.preparation;
  const Side a =
      side_of("predicted", predicted.timeline, ready.schedule, predicted.report, ready.work, Json::object());
  const Side b =
      side_of("executed", executed.timeline, executed.schedule, executed.report, executed.work, more);
  return show_comparison({show.json, show.svg, show.trace, options.fail_above}, a, b);
}

}  // namespace rehearse
