// Hardware for a run: clusters that ship with the program and variants of them, with slow parts.
#pragma once

#include <string>
#include <vector>

#include "base/json_reader.h"
#include "draw_model.h"

namespace rehearse::properties {

struct Hardware {
  std::string name;     // how coverage calls it
  std::string cluster;  // that ships with the program
  std::string changes;  // as "cluster_changes" of a scenario
  std::string profile;  // "": the cluster's own
  std::vector<std::string> precisions;
  int gpus_a_node = 8;
  bool has_host = false;  // its host is on record
  bool is_blackwell() const { return cluster == "gb200-nvl72" || cluster == "dgx-b200"; }
};

// That `gpus` of the plan fit on.
Hardware draw_hardware(int gpus);

// Writes cluster, profile, and by chance placement, slow parts, jitter and mixed nodes into the scenario.
void add_hardware(Json& scenario, const Hardware& hardware, const Degrees& degrees);

}  // namespace rehearse::properties
