#include "contention.h"

#include <algorithm>
#include <map>
#include <set>

namespace rehearse::properties {

namespace {

struct Use {
  double begin = 0, end = 0;
};

// The links that a task's bytes cross.
std::set<LinkId> links_of(const Loads& loads, TaskId task) {
  std::set<LinkId> links;
  const auto add = [&](const Endpoints& ends) {
    for (const EndId end : {ends.out, ends.in})
      for (const LinkId link : loads.ends[static_cast<std::size_t>(end)]) links.insert(link);
  };
  for (const Flow& flow : loads.flows_of(task)) add(flow.ends);
  if (const ContendedOp* op = loads.inside.of(task)) {
    for (std::size_t group = 0; group < kInnerGroups; ++group)
      for (const FlowRate& pace : loads.inside.rates_of(*op, group)) add(pace.ends);
  }
  return links;
}

}  // namespace

bool meets_on_a_link(const Tasks& tasks, const Loads& loads, const Timeline& alone) {
  std::map<LinkId, std::vector<Use>> uses;
  for (TaskId task = 0; task < tasks.size(); ++task) {
    const OpRef leader = tasks.leader[task];
    const Span& span =
        alone.ranks[static_cast<std::size_t>(leader.instance)].spans[static_cast<std::size_t>(leader.op)];
    for (const LinkId link : links_of(loads, task)) uses[link].push_back({span.begin, span.end});
  }
  return std::ranges::any_of(uses, [](auto& entry) {
    std::vector<Use>& of_link = entry.second;
    std::ranges::sort(of_link, {}, &Use::begin);
    for (std::size_t i = 1; i < of_link.size(); ++i) {
      if (of_link[i].begin < of_link[i - 1].end) return true;
      of_link[i].end = std::max(of_link[i].end, of_link[i - 1].end);
    }
    return false;
  });
}

std::vector<int> transfers_in_a_row(const Tasks& tasks, const Loads& loads) {
  std::vector<int> most(tasks.size());
  for (const TaskId task : topological_order(tasks)) {
    if (!loads.flows_of(task).empty()) ++most[task];
    if (const ContendedOp* op = loads.inside.of(task))
      most[task] += op->rounds * 2 * static_cast<int>(kInnerGroups);
    for (const TaskId next : tasks.after(task)) most[next] = std::max(most[next], most[task]);
  }
  return most;
}

}  // namespace rehearse::properties
