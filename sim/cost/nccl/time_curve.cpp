#include "cost/nccl/time_curve.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rehearse::nccl {

namespace {

constexpr double kLargest = 17179869184;  // 16 GiB: where every algorithm has reached its rate
constexpr int kOctavesOfKnots = 42, kKnotsOfOctave = 2;
// A measured size against one that is estimated between or beyond measured ones.
constexpr double kMeasuredWeight = 100;

// Falling neighbours are pooled. A pool keeps its knots in order of time.
struct Pool {
  std::vector<Knot> knots;
  std::size_t size() const { return knots.size(); }

  // The lower weighted median.
  double seconds() const {
    if (knots.size() == 1) return knots.front().seconds;
    double half = 0, below = 0;
    for (const Knot& knot : knots) half += knot.weight / 2;
    for (const Knot& knot : knots) {
      below += knot.weight;
      if (below >= half * (1 - 1e-12)) return knot.seconds;
    }
    return knots.back().seconds;
  }

  void take(const Pool& next) {
    std::vector<Knot> both(knots.size() + next.knots.size());
    std::ranges::merge(knots, next.knots, both.begin(), {}, &Knot::seconds, &Knot::seconds);
    knots = std::move(both);
  }
};

std::vector<double> sizes(const System& system) {
  std::vector<double> bytes;
  for (int step = 0; step <= kOctavesOfKnots * kKnotsOfOctave; ++step)
    bytes.push_back(std::exp2(static_cast<double>(step) / kKnotsOfOctave));
  for (const Measured::Row& row : system.measured_rows()) bytes.push_back(row.bytes);
  std::ranges::sort(bytes);
  const auto repeated = std::ranges::unique(bytes);
  bytes.erase(repeated.begin(), repeated.end());
  return bytes;
}

bool is_measured(const std::vector<Measured::Row>& rows, double bytes) {
  return std::ranges::binary_search(rows, bytes, {}, &Measured::Row::bytes);
}

// Seconds to start messages to ranks on other nodes, at least one each, on the NICs of a node.
double least_to_start(const Cluster& cluster, CollectiveOp op, const GroupShape& group, const Graph& graph) {
  const double rate = cluster.node.nic_limits.messages_per_s;
  if (group.nodes == 1 || rate <= 0) return 0;
  const double remote = op == CollectiveOp::all_to_all ? group.members - graph.local : 1;
  return remote * graph.local / (graph.nics * rate);
}

// Seconds of one byte that must cross a GPU's link, or the NICs of a node, at the highest rate of these.
double least_on_wires(const Cluster& cluster, CollectiveOp op, const GroupShape& group, const Graph& graph) {
  const double link = group.in_island ? cluster.nccl.island_bandwidth : cluster.node.gpu_link.bandwidth;
  const double others = op == CollectiveOp::send_receive ? 1 : (group.members - 1.0) / group.members;
  if (group.nodes == 1) return others / link;
  const double nic = cluster.node.nic.bandwidth * cluster.node.nic_limits.efficiency;
  const double remote = (group.nodes - 1.0) / group.nodes;
  if (op == CollectiveOp::send_receive) return graph.local / (graph.nics * nic);
  if (op == CollectiveOp::all_to_all) return remote * graph.local / (graph.nics * nic);
  return remote / (graph.ring_nics * nic);
}

}  // namespace

std::vector<Knot> without_falls(std::vector<Knot> knots) {
  std::vector<Pool> pools;
  for (const Knot& knot : knots) {
    Pool next{{knot}};
    while (!pools.empty() && pools.back().seconds() > next.seconds()) {
      pools.back().take(next);
      next = std::move(pools.back());
      pools.pop_back();
    }
    pools.push_back(std::move(next));
  }
  std::size_t at = 0;
  for (const Pool& pool : pools)
    for (std::size_t i = 0; i < pool.size(); ++i) knots[at++].seconds = pool.seconds();
  return knots;
}

TimeCurve::TimeCurve(const Model& model, const Cluster& cluster, CollectiveOp op, const GroupShape& group,
                     std::optional<Algorithm> forced) {
  if (group.members <= 1) return;
  const System system(model, cluster, group, op, forced);
  for (const double bytes : sizes(system))
    knots_.push_back(
        {bytes, system.seconds(bytes), is_measured(system.measured_rows(), bytes) ? kMeasuredWeight : 1});
  knots_ = without_falls(std::move(knots_));
  least_s_ = least_to_start(cluster, op, group, system.graph());
  least_s_per_byte_ = least_on_wires(cluster, op, group, system.graph());
  transfer_s_per_byte_ = std::exp(system.log_ratio(kLargest)) / system.believed(kLargest).rate;
  extrapolated_ = !system.known();
}

double TimeCurve::between_knots(double bytes) const {
  const auto above = std::ranges::lower_bound(knots_, bytes, {}, &Knot::bytes);
  if (above == knots_.begin()) return above->seconds;
  if (above == knots_.end()) return knots_.back().seconds * bytes / knots_.back().bytes;
  const Knot& below = *std::prev(above);
  const double share = (bytes - below.bytes) / (above->bytes - below.bytes);
  return std::lerp(below.seconds, above->seconds, share);
}

CommunicationTime TimeCurve::at(double bytes) const {
  if (knots_.empty()) return {};
  const double floor = std::max(least_s_, bytes * least_s_per_byte_);
  const double total = std::max(floor, between_knots(bytes));
  const double transfer = std::clamp(bytes * transfer_s_per_byte_, floor, total);
  return {total - transfer, transfer, extrapolated_};
}

CommunicationTime collective_time(const Model& model, const Cluster& cluster, CollectiveOp op, double bytes,
                                  const GroupShape& group, std::optional<Algorithm> forced) {
  return TimeCurve(model, cluster, op, group, forced).at(bytes);
}

}  // namespace rehearse::nccl
