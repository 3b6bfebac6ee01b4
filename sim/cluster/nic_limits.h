// How much of its line rate does a NIC achieve?
#pragma once

#include <string>

namespace rehearse {

struct NicLimits {
  double efficiency = 1;      // of the line rate, for payload
  double messages_per_s = 0;  // most that one NIC starts; 0: none on record
  std::string source = {};    // empty: nothing on record
};

// From calibrate/data/nics.json, by kind and line rate in bytes/s; a cluster's "nics" may override it.
// InputError when that file breaks a rule.
NicLimits read_nic_limits(const std::string& kind, double bandwidth);

}  // namespace rehearse
