#include "result/traffic.h"

#include <algorithm>
#include <optional>

#include "plan/comm_group.h"
#include "plan/fanout.h"

namespace rehearse {

namespace {

class Sender {
 public:
  explicit Sender(const Report& report)
      : plan_(report.plan),
        grid_(report.plan),
        groups_(report.plan),
        experts_(report.model.experts),
        gpus_per_node_(std::max(1, report.facts.gpus_per_node)) {
    Coordinates first{};
    first[static_cast<std::size_t>(Axis::pp)] = report.critical_rank;
    rank_ = grid_.rank(first);
  }

  LinkTraffic sent(const CommunicationLine& line) const {
    if (line.kind == "offload") return {0, 0, line.bytes_per_rank};
    // Sent and received bytes; half of either is sent to each neighbour.
    if (line.kind == "pp") return divided(line.bytes_per_rank / 2, share_of_others(neighbours()));
    const std::vector<int> group = groups_.ranks(line.group, rank_);
    const auto n = static_cast<double>(group.size());
    const double sent = line.bytes_per_rank * (line.op == "all_reduce" ? 2 : 1) * (n - 1) / std::max(1.0, n);
    if (line.op == "dispatch" || line.op == "combine") return of_visits(line.bytes_per_rank, group);
    if (line.op == "all_to_all") return divided(sent, share_of_others(group));
    const auto inside =
        static_cast<double>(std::ranges::count_if(group, [&](int rank) { return is_near(rank); }));
    return divided(sent, inside < n ? 1 / std::max(1.0, inside) : 0);
  }

 private:
  // For rows that visit each rank once: sent once to each other node, and within a node to each other rank.
  LinkTraffic of_visits(double bytes, const std::vector<int>& group) const {
    if (!experts_) return {};
    const Fanout fanout{experts_->count, experts_->per_token};
    const auto n = static_cast<double>(group.size());
    const auto local =
        static_cast<double>(std::ranges::count_if(group, [&](int rank) { return is_near(rank); }));
    const double nodes = std::max(1.0, n / local);
    return {bytes * (local - 1) / local,
            bytes * copies(fanout, nodes) / copies(fanout, n) * (nodes - 1) / nodes, 0};
  }

  bool is_near(int rank) const { return rank / gpus_per_node_ == rank_ / gpus_per_node_; }

  static LinkTraffic divided(double bytes, double across) {
    return {bytes * (1 - across), bytes * across, 0};
  }

  // The share of the other ranks in a group that are on other nodes.
  double share_of_others(const std::vector<int>& group) const {
    double others = 0, far = 0;
    for (const int rank : group) {
      if (rank == rank_) continue;
      ++others;
      far += is_near(rank) ? 0 : 1;
    }
    return others > 0 ? far / others : 0;
  }

  int at_stage(int pipeline_rank) const {
    Coordinates place = grid_.coordinates(rank_);
    place[static_cast<std::size_t>(Axis::pp)] = pipeline_rank;
    return grid_.rank(place);
  }

  int pipeline_rank() const { return grid_.coordinates(rank_)[static_cast<std::size_t>(Axis::pp)]; }

  // With several chunks a rank, the ends of the pipeline are neighbours too, unless the schedule is V-shaped.
  std::vector<int> neighbours() const {
    const bool is_ring = plan_.schedule == ScheduleName::interleaved && plan_.vpp > 1;
    std::vector<int> ranks;
    for (const int step : {-1, 1}) {
      const int to = pipeline_rank() + step;
      if (to >= 0 && to < plan_.pp)
        ranks.push_back(at_stage(to));
      else if (is_ring)
        ranks.push_back(at_stage((to + plan_.pp) % plan_.pp));
    }
    return ranks;
  }

  const Plan& plan_;
  RankGrid grid_;
  CommGroups groups_;
  std::optional<Experts> experts_;
  int gpus_per_node_;
  int rank_ = 0;
};

}  // namespace

LinkTraffic& LinkTraffic::operator+=(const LinkTraffic& other) {
  gpu_link += other.gpu_link;
  nic += other.nic;
  host += other.host;
  return *this;
}

std::vector<LinkTraffic> link_traffic(const Report& report) {
  if (report.communication.empty()) return {};
  const Sender sender(report);
  std::vector<LinkTraffic> traffic;
  for (const CommunicationLine& line : report.communication) traffic.push_back(sender.sent(line));
  return traffic;
}

}  // namespace rehearse
