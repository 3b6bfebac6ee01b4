#include "calibrate/timing/placements.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace rehearse {

namespace {

struct GroupSize {
  int nodes = 1, per_node = 1;
  auto operator<=>(const GroupSize&) const = default;
};

class Places {
 public:
  explicit Places(const std::vector<int>& machines) {
    for (std::size_t rank = 0; rank < machines.size(); ++rank) {
      const auto machine = static_cast<std::size_t>(machines[rank]);
      if (machine >= ranks_.size()) ranks_.resize(machine + 1);
      ranks_[machine].push_back(static_cast<int>(rank));
    }
  }

  int most_per_node() const {
    std::size_t most = 0;
    for (const std::vector<int>& own : ranks_) most = std::max(most, own.size());
    return static_cast<int>(most);
  }

  // Number of machines with at least this many ranks.
  int nodes_with(int per_node) const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [&](const std::vector<int>& own) {
      return own.size() >= static_cast<std::size_t>(per_node);
    }));
  }

  std::vector<int> members(const GroupSize& group) const {
    std::vector<int> all;
    int left = group.nodes;
    for (const std::vector<int>& own : ranks_) {
      if (left == 0 || own.size() < static_cast<std::size_t>(group.per_node)) continue;
      all.insert(all.end(), own.begin(), own.begin() + group.per_node);
      --left;
    }
    return all;
  }

 private:
  std::vector<std::vector<int>> ranks_;  // by machine
};

std::set<int> powers_of_two_and(int last) {
  std::set<int> numbers = {last};
  for (int n = 1; n < last; n *= 2) numbers.insert(n);
  return numbers;
}

std::set<GroupSize> group_sizes(const Places& places, const std::vector<MessageJob>& wanted) {
  std::set<GroupSize> sizes;
  const auto add = [&](int nodes, int per_node) {
    if (per_node >= 1 && nodes * per_node > 1 && places.nodes_with(per_node) >= nodes)
      sizes.insert({nodes, per_node});
  };
  std::set<int> members;
  for (const MessageJob& job : wanted) members.insert(job.members);
  for (const int per_node : powers_of_two_and(places.most_per_node())) {
    for (const int nodes : powers_of_two_and(places.nodes_with(per_node))) {
      add(nodes, per_node);
      for (const int all : members)
        if (all % nodes == 0) add(nodes, all / nodes);
    }
  }
  return sizes;
}

}  // namespace

std::vector<PlacedMessage> place_messages(const std::vector<MessageJob>& wanted,
                                          const std::vector<int>& machines) {
  const Places places(machines);
  std::map<CollectiveOp, std::set<double>> bytes;
  for (const MessageJob& job : wanted) bytes[job.op].insert(job.bytes);
  std::map<MessageJob, std::vector<int>> placed;
  for (const GroupSize& group : group_sizes(places, wanted)) {
    const int members = group.nodes * group.per_node;
    for (const auto& [op, sizes] : bytes) {
      if (op == CollectiveOp::send_receive && members != 2) continue;
      for (const double size : sizes) placed[{op, members, size, group.nodes}] = places.members(group);
    }
  }
  std::vector<PlacedMessage> all;
  for (auto& [job, members] : placed) all.push_back({job, std::move(members)});
  return all;
}

std::vector<PlacedMessage> among_first(const std::vector<MessageJob>& wanted, int ranks) {
  std::vector<PlacedMessage> all;
  for (const MessageJob& job : wanted) {
    if (job.members > ranks) continue;
    all.push_back({job, std::vector<int>(static_cast<std::size_t>(job.members))});
    std::iota(all.back().members.begin(), all.back().members.end(), 0);
  }
  return all;
}

std::vector<MessageJob> message_sweep(double largest) {
  std::vector<MessageJob> all;
  for (const CollectiveOp op :
       {CollectiveOp::all_reduce, CollectiveOp::all_gather, CollectiveOp::reduce_scatter,
        CollectiveOp::all_to_all, CollectiveOp::broadcast, CollectiveOp::send_receive}) {
    for (double bytes = 1024; bytes <= largest; bytes *= 4) all.push_back({op, 2, bytes});
  }
  return all;
}

}  // namespace rehearse
