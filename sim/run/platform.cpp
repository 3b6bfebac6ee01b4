#include "run/platform.h"

#include <simgrid/version.h>

#include <fmt/core.h>

#include <csignal>
#include <stdexcept>

namespace rehearse {

namespace s4u = simgrid::s4u;

namespace {

// Keeps the program's own handler for Ctrl-C. SimGrid replaces it as it starts, and would end with exit code
// 1.
class KeptInterrupt {
 public:
  KeptInterrupt() { sigaction(SIGINT, nullptr, &own_); }
  ~KeptInterrupt() { sigaction(SIGINT, &own_, nullptr); }
  KeptInterrupt(const KeptInterrupt&) = delete;
  KeptInterrupt& operator=(const KeptInterrupt&) = delete;

 private:
  struct sigaction own_ = {};
};

// The engine reads options from argv and would print its own log lines, so it gets a separate argv.
s4u::Engine make_engine() {
  // A second engine would go on with the first one's clock and refuse its settings.
  static bool used = false;
  if (used) throw std::logic_error("SimGrid allows one simulation a process");
  used = true;
  static std::vector<std::string> words = {
      "rehearse",
      "--log=root.thresh:warning",
      // Plain max-min sharing: the default model applies TCP's factors, which GPU fabrics do not have.
      "--cfg=network/model:CM02",
      "--cfg=network/crosstraffic:0",
      "--cfg=network/TCP-gamma:0",
      "--cfg=network/weight-S:0",
  };
  static std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int argc = static_cast<int>(words.size());
  const KeptInterrupt kept;
  return s4u::Engine(&argc, argv.data());
}

// SimGrid 4 renamed these functions.
#if SIMGRID_VERSION >= 40000
s4u::Link* add_link(s4u::NetZone& zone, const std::string& name, double bandwidth) {
  return zone.add_link(name, bandwidth);
}

s4u::Host* add_host(s4u::NetZone& zone, const std::string& name) {
  return zone.add_host(name, 1.0);
}

// The two routes in a star: from the host, and to it.
void join(s4u::NetZone& zone, s4u::Host* host, const std::vector<s4u::LinkInRoute>& crossed) {
  const s4u::Host* centre = nullptr;
  zone.add_route(host, centre, crossed, false);
  zone.add_route(centre, host, crossed, false);
}
#else
s4u::Link* add_link(s4u::NetZone& zone, const std::string& name, double bandwidth) {
  return zone.create_link(name, bandwidth);
}

s4u::Host* add_host(s4u::NetZone& zone, const std::string& name) {
  return zone.create_host(name, 1.0);
}

// The two routes in a star: from the host, and to it.
void join(s4u::NetZone& zone, s4u::Host* host, const std::vector<s4u::LinkInRoute>& crossed) {
  zone.add_route(host->get_netpoint(), nullptr, nullptr, nullptr, crossed, false);
  zone.add_route(nullptr, host->get_netpoint(), nullptr, nullptr, crossed, false);
}
#endif

}  // namespace

Platform::Platform(const std::vector<double>& capacity, const std::vector<std::vector<LinkId>>& ends)
    : engine_(make_engine()) {
#if SIMGRID_VERSION >= 40000
  s4u::NetZone* zone = engine_.get_netzone_root()->add_netzone_star("links");
#else
  s4u::NetZone* zone = s4u::create_star_zone("links");
#endif
  std::vector<s4u::Link*> links;
  for (std::size_t i = 0; i < capacity.size(); ++i)
    links.push_back(add_link(*zone, fmt::format("link-{}", i), capacity[i])->set_latency(0)->seal());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    // Hosts are mere end points: no computation runs on them.
    s4u::Host* host = add_host(*zone, fmt::format("end-{}", i));
    host->seal();
    std::vector<s4u::LinkInRoute> crossed;
    for (const LinkId link : ends[i]) crossed.emplace_back(links[static_cast<std::size_t>(link)]);
    join(*zone, host, crossed);
    hosts_.push_back(host);
  }
  zone->seal();
}

}  // namespace rehearse
