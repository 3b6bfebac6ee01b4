#include "cost/links.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rehearse {

namespace {

const LinkCost* find_link(const Profile& profile, const std::string& kind, const std::string& op) {
  const auto found = std::find_if(profile.links.begin(), profile.links.end(),
                                  [&](const LinkCost& link) { return link.kind == kind && link.op == op; });
  return found == profile.links.end() ? nullptr : &*found;
}

Channel channel(const Profile& profile, const Port& port, const std::string& kind, const std::string& op,
                const std::string& stand_in) {
  const LinkCost* link = find_link(profile, kind, op);
  const bool known = link != nullptr;
  if (!known) link = find_link(profile, stand_in, op);
  if (link == nullptr) {
    std::vector<std::string> kinds;
    for (const LinkCost& other : profile.links) {
      if (other.op == op) kinds.push_back(other.kind);
    }
    throw MissingCalibration(fmt::format("profile {} has no \"{}\" cost of links of kind \"{}\"; it has {}",
                                         profile.name, op, kind, join(kinds)));
  }
  // A measured cost contains the wire's latency. A modelled cost knows nothing of this port.
  const double wire = link->how == How::modelled ? port.latency : 0;
  return {link->latency_s, link->step_latency_s + wire, link->efficiency * port.bandwidth, !known};
}

}  // namespace

bool has_link(const Profile& profile, const std::string& kind, const std::string& op) {
  return find_link(profile, kind, op) != nullptr;
}

Channel gpu_channel(const Profile& profile, const Cluster& cluster, const std::string& op) {
  return channel(profile, cluster.node.gpu_link, cluster.node.gpu_link_kind, op, "nvswitch");
}

Channel nic_channel(const Profile& profile, const Cluster& cluster, const std::string& op) {
  if (cluster.node.nics < 1) {
    throw InputError(
        {cluster.name, "/node/nics", "a group across nodes needs a NIC in each", "nics = 0", "1"});
  }
  return channel(profile, cluster.node.nic, cluster.node.nic_kind, op, "infiniband");
}

double nics_of_a_gpu(const Node& node) {
  return std::max(1, node.nics / node.gpus);
}

}  // namespace rehearse
