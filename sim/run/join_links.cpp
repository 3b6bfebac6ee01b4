#include <utility>

#include "run/loads.h"

namespace rehearse {

void join_links(Loads& own, Loads& other) {
  std::vector<LinkId> link_of(other.capacity.size(), -1);
  for (const auto& [id, link] : other.fabric)
    if (const auto known = own.fabric.find(id); known != own.fabric.end())
      link_of[static_cast<std::size_t>(link)] = known->second;
  for (std::size_t link = 0; link < link_of.size(); ++link) {
    if (link_of[link] >= 0) continue;
    link_of[link] = static_cast<LinkId>(own.capacity.size());
    own.capacity.push_back(other.capacity[link]);
  }
  const auto first_end = static_cast<EndId>(own.ends.size());
  for (std::vector<LinkId> end : other.ends) {
    for (LinkId& link : end) link = link_of[static_cast<std::size_t>(link)];
    own.ends.push_back(std::move(end));
  }
  const auto move = [first_end](Endpoints& ends) { ends = {ends.out + first_end, ends.in + first_end}; };
  for (Flow& flow : other.flows) move(flow.ends);
  for (FlowRates& paces : other.inside.paces)
    for (std::vector<FlowRate>& of_group : paces)
      for (FlowRate& pace : of_group) move(pace.ends);
  other.capacity = own.capacity;
  other.ends = own.ends;
}

}  // namespace rehearse
