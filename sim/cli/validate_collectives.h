// How well are nccl-tests tables predicted, as text or as JSON?
#pragma once

#include <string>
#include <vector>

#include "calibrate/import/nccl_profile.h"
#include "cli/verb.h"

namespace rehearse {

// Each table on the cluster that it names, each run of a log on the request's, by the collectives of
// `profile` (empty: as shipped). InputError for a file that is none of both, MissingCalibration for a profile
// without collectives.
std::string validate_collectives(const nccl::LogImport& request, const std::string& profile, bool json);

// --cluster, --op, --nodes and --gpus-per-node: what a log of nccl-tests does not say.
std::vector<VerbOption> log_options(nccl::LogImport& request);

}  // namespace rehearse
