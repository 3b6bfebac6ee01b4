// How accurate is the prediction? Additional steps of execute --predict: it times the profile's missing
// samples first, and compares afterwards.
#pragma once

#include <functional>
#include <string>

#include "cli/show_run.h"
#include "execute/device_set.h"
#include "run/iteration.h"

namespace rehearse {

struct PredictOptions {
  bool wanted = false;
  bool fresh = false;       // time all kernels here, whatever the profile has
  std::string profile_out;  // file of the profile; an existing one is continued
  std::string fail_above;
  double seconds = 0.3;  // for each kernel and message
};
std::vector<VerbOption> predict_options(PredictOptions& options);

// Times the samples that the experiment needs and its profile lacks, where a rank would run them: on cores,
// on a GPU, or on the partitions of one GPU. A profile of another device is replaced, not continued. Returns
// false when `stopped` was true before the end. InputError when the kept profile is of another device,
// kernels::DeviceMissing without the device.
bool calibrate_missing(Experiment& experiment, const PredictOptions& options, DeviceKind device,
                       const std::function<bool()>& stopped);

// Shows both runs as compare does, with `more` added to the executed report. Returns compare's exit code.
int show_predicted(const ShowOptions& show, const PredictOptions& options, const Iteration& predicted,
                   const Shown& executed, const Json& more);

}  // namespace rehearse
