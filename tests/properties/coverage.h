// Which features did the drawn runs have, and why were others refused?
#pragma once

#include <map>
#include <set>
#include <string>

#include "drawn.h"
#include "run/iteration.h"

namespace rehearse::properties {

class Coverage {
 public:
  void taken(const Drawn& drawn, const Experiment& experiment);
  void discarded(const std::string& rule);

  int runs() const { return taken_; }
  double discard_rate() const;
  const std::map<std::string, int>& features() const { return features_; }
  std::string table() const;  // "feature  runs  share", then the rules that discarded

 private:
  int taken_ = 0, discarded_ = 0;
  std::map<std::string, int> features_, rules_;
};

// The coverage of this process.
Coverage& coverage();

// "schedule=zb-v", "tp", "cp=p2p", ...
std::set<std::string> features_of(const Drawn& drawn, const Experiment& experiment);

// All that the runs are meant to have.
std::set<std::string> wanted_features();

}  // namespace rehearse::properties
