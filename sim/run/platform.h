// How does SimGrid see the links? One of the two files that know SimGrid's names.
#pragma once

#include <simgrid/s4u.hpp>
#include <vector>

#include "run/loads.h"

namespace rehearse {

// Creates the process's one SimGrid engine with a host for each end of a flow. A flow from host[out] to
// host[in] crosses exactly the links of both. Links have no latency of their own. std::logic_error when the
// process already has an engine.
class Platform {
 public:
  Platform(const std::vector<double>& capacity, const std::vector<std::vector<LinkId>>& ends);

  simgrid::s4u::Engine& engine() { return engine_; }
  simgrid::s4u::Host* host(EndId end) const { return hosts_[static_cast<std::size_t>(end)]; }

 private:
  simgrid::s4u::Engine engine_;
  std::vector<simgrid::s4u::Host*> hosts_;
};

}  // namespace rehearse
