#include "run/link_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"
#include "cost/links.h"

namespace rehearse {

LinkTable::LinkTable(const Cluster& cluster, const Conditions& conditions)
    : cluster_(cluster), pxn_(conditions.pxn), shared_(rehearse::has_shared_links(cluster.fabric)) {
  for (const Slow& slow : conditions.slow) {
    if (slow.part == Slow::Part::link) link_speed_[slow.link] = slow.speed;
    if (slow.part == Slow::Part::gpu_link) gpu_speed_[{slow.gpu.node, slow.gpu.gpu}] = slow.speed;
    if (slow.part == Slow::Part::nic) nic_speed_[{slow.nic.node, slow.nic.nic}] = slow.speed;
  }
  shared_ = shared_ || !link_speed_.empty();
}

LinkId LinkTable::add_link(double capacity) {
  capacity_.push_back(capacity);
  return static_cast<LinkId>(capacity_.size() - 1);
}

LinkId LinkTable::unbounded_link() {
  constexpr double kAboveAnyLink = 1e18;
  if (unbounded_ < 0) unbounded_ = add_link(kAboveAnyLink);
  return unbounded_;
}

EndId LinkTable::end_of(const std::vector<LinkId>& links) {
  const auto [found, is_new] = end_of_.try_emplace(links, static_cast<EndId>(ends_.size()));
  if (is_new) ends_.push_back(links);
  return found->second;
}

Endpoints LinkTable::gpu_port(std::int64_t node, int gpu) {
  const auto [found, is_new] = gpu_ports_.try_emplace({node, gpu});
  if (is_new) {
    const double rate = gpu_bandwidth({node, gpu});
    found->second = {end_of({add_link(rate)}), end_of({add_link(rate)})};
  }
  return found->second;
}

Endpoints LinkTable::nic_port(NicPlace nic) {
  const auto [found, is_new] = nic_ports_.try_emplace({nic.node, nic.nic});
  if (is_new) {
    const double rate = nic_bandwidth(nic);
    found->second = {end_of({add_link(rate)}), end_of({add_link(rate)})};
  }
  return found->second;
}

double LinkTable::gpu_bandwidth(GpuPlace place) const {
  const auto slow = gpu_speed_.find({place.node, place.gpu});
  return cluster_.node.gpu_link.bandwidth * (slow == gpu_speed_.end() ? 1 : slow->second);
}

double LinkTable::nic_bandwidth(NicPlace nic) const {
  const auto slow = nic_speed_.find({nic.node, nic.nic});
  const double speed = slow == nic_speed_.end() ? 1 : slow->second;
  return cluster_.node.nic.bandwidth * std::max(1, cluster_.node.nics / cluster_.node.gpus) * speed;
}

NicPlace LinkTable::nic_of(GpuPlace place) const {
  const int own = cluster_.nic_of(place.gpu);
  for (int i = 0; i < cluster_.node.nics; ++i) {
    const NicPlace nic{place.node, (own + i) % cluster_.node.nics};
    if (nic_speed_.empty() || nic_bandwidth(nic) > 0) return nic;
  }
  throw InputError({"command line", "--slow", fmt::format("node {} has no NIC left", place.node), "", ""});
}

std::pair<NicPlace, NicPlace> LinkTable::nics_between(GpuPlace from, GpuPlace to) const {
  const NicPlace own = nic_of(from), theirs = nic_of(to);
  // It matters which NIC a message takes only where NICs of one index meet below switches of their own.
  const NicPlace rail{from.node, theirs.nic};
  const bool crosses_rail = pxn_ && cluster_.fabric.rails && shared_ && nic_bandwidth(rail) > 0;
  return {crosses_rail ? rail : own, theirs};
}

Endpoints LinkTable::message(GpuPlace from, GpuPlace to) {
  if (from.node == to.node) return inside(from, to);
  const auto [out, in] = nics_between(from, to);
  return across(out, in);
}

// Limits are the GPU ports, and the links between them where the node's wiring is known.
Endpoints LinkTable::inside(GpuPlace from, GpuPlace to) {
  const Endpoints source = gpu_port(from.node, from.gpu), target = gpu_port(to.node, to.gpu);
  const std::vector<LinkId> between = wires(from, to);
  if (between.empty()) return {source.out, target.in};
  std::vector<LinkId> out = ends_[static_cast<std::size_t>(source.out)];
  out.insert(out.end(), between.begin(), between.end());
  return {end_of(out), target.in};
}

std::vector<LinkId> LinkTable::wires(GpuPlace from, GpuPlace to) {
  if (cluster_.node.wiring.empty()) return {};
  const auto [found, is_new] = wires_.try_emplace({from.gpu, to.gpu});
  if (is_new) found->second = wires_between(cluster_.node, from.gpu, to.gpu);
  std::vector<LinkId> links;
  for (const Wire& wire : found->second) {
    const auto [link, is_first] = wire_links_.try_emplace({from.node, wire.from, wire.to}, 0);
    if (is_first) link->second = add_link(wire.bandwidth);
    links.push_back(link->second);
  }
  return links;
}

double LinkTable::speed_of_link(const std::string& name) const {
  const auto found = link_speed_.find(name);
  return found == link_speed_.end() ? 1 : found->second;
}

std::vector<FabricLink> LinkTable::shared_route(NicPlace from, NicPlace to) const {
  if (!shared_) return {};
  std::vector<FabricLink> route = fabric_route(cluster_, from, to);
  // A GPU sends through all of its NICs at once. The path of the first one stands for their rails.
  if (cluster_.fabric.rails)
    for (FabricLink& link : route)
      if (link.level == 0) link.bandwidth *= nics_of_a_gpu(cluster_.node);
  if (!link_speed_.empty()) {
    for (FabricLink& link : route) {
      const double speed = speed_of_link(link.name);
      if (speed == 0)
        throw InputError({"command line", "--slow",
                          fmt::format("{} is down, and node {} has no other way to node {}", link.name,
                                      from.node, to.node),
                          "", ""});
      link.bandwidth *= speed;
      link.shared = link.shared || speed < 1;
    }
  }
  std::erase_if(route, [](const FabricLink& link) { return !link.shared; });
  return route;
}

LinkId LinkTable::fabric_link(const FabricLink& link) {
  const auto [found, is_new] = fabric_links_.try_emplace(link.id, 0);
  if (is_new) found->second = add_link(link.bandwidth);
  return found->second;
}

Endpoints LinkTable::across(NicPlace from, NicPlace to) {
  Endpoints flow{nic_port(from).out, nic_port(to).in};
  const std::vector<FabricLink> route = shared_route(from, to);
  if (route.empty()) return flow;
  std::vector<LinkId> out = ends_[static_cast<std::size_t>(flow.out)], in;
  for (const FabricLink& link : route) (link.up ? out : in).push_back(fabric_link(link));
  const std::vector<LinkId>& port = ends_[static_cast<std::size_t>(flow.in)];
  in.insert(in.end(), port.begin(), port.end());
  return {end_of(out), end_of(in)};
}

}  // namespace rehearse
