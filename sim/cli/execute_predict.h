// How close does the prediction come? What execute --predict does besides executing: times what the profile
// lacks beforehand, compares afterwards.
#pragma once

#include <functional>
#include <string>

#include "cli/show_run.h"
#include "execute/device_set.h"
#include "run/iteration.h"

namespace rehearse {

struct PredictOptions {
  bool wanted = false;
  bool fresh = false;       // time all here, whatever the profile knows
  std::string profile_out;  // where the profile is kept; one that exists is continued
  std::string fail_above;
  double seconds = 0.3;  // for each kernel and message
};
std::vector<VerbOption> predict_options(PredictOptions& options);

// Times what the experiment asks for and its profile lacks where a rank would run it: kernels and messages on
// cores, on a GPU, or on the parts of one that ranks divide among them. A profile of another device is not
// continued but replaced. False when `stopped` said so before the end. InputError when the kept profile is of
// another device, kernels::DeviceMissing without the device.
bool calibrate_missing(Experiment& experiment, const PredictOptions& options, DeviceKind device,
                       const std::function<bool()>& stopped);

// Shows both runs as compare does, `more` beside the executed report; the exit code is compare's.
int show_predicted(const ShowOptions& show, const PredictOptions& options, const Iteration& predicted,
                   const Shown& executed, const Json& more);

}  // namespace rehearse
