// How accurate are predictions of nccl-tests tables, as text or as JSON?
#pragma once

#include <string>
#include <vector>

#include "calibrate/import/nccl_profile.h"
#include "cli/verb.h"

namespace rehearse {

// Predicts each table on its own cluster, and each run of a log on the request's cluster, with the
// collectives of `profile` (empty: as shipped). InputError for a file that is neither, MissingCalibration for
// a profile without collectives.
std::string validate_collectives(const nccl::LogImport& request, const std::string& profile, bool json);

// --cluster, --op, --nodes and --gpus-per-node: facts that a log of nccl-tests lacks.
std::vector<VerbOption> log_options(nccl::LogImport& request);

}  // namespace rehearse
