// How well are nccl-tests tables predicted, as text or as JSON?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// Each table on the cluster that it names, by the collectives of `profile` (empty: as shipped). Throws
// InputError for a table that is no JSON, MissingCalibration for a profile without collectives.
std::string validate_collectives(const std::vector<std::string>& tables, const std::string& profile,
                                 bool json);

}  // namespace rehearse
