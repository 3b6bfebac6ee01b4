#include "cost/nccl/tuning.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace rehearse::nccl {

namespace {

constexpr double kNetworkOverhead_s = 1e-6;  // of the proxy that feeds the NIC; three times for Simple
constexpr double kGpusOfChannels = 8;        // that NVLS channels are laid out for
constexpr double kCorrectedSizes = 23;       // of a tree: 64 B to 256 MiB

// One algorithm and protocol for one operation.
struct Candidate {
  Algorithm algorithm;
  Protocol protocol;
};

class Tuning {
 public:
  Tuning(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes)
      : constants_(constants), graph_(graph), op_(op), bytes_(bytes) {}

  bool runs(Candidate c) const {
    if (c.protocol == Protocol::ll128 && !graph_.ll128) return false;
    const bool simple = c.protocol == Protocol::simple;
    const bool reduces = op_ == CollectiveOp::all_reduce;
    const bool gathers = op_ == CollectiveOp::all_gather || op_ == CollectiveOp::reduce_scatter;
    switch (c.algorithm) {
      case Algorithm::ring:
        return true;
      case Algorithm::tree:
        return reduces;
      case Algorithm::nvls:
        return simple && graph_.head_rate > 0 && graph_.nodes == 1 && (reduces || gathers);
      case Algorithm::nvls_tree:
        return simple && graph_.head_rate > 0 && graph_.nodes > 1 && reduces;
      case Algorithm::pat:
        return simple && graph_.nodes > 1 && graph_.local <= 1 && gathers;
    }
    return false;
  }

  double latency_s(Candidate c) const {
    const double base = constants_.base_latency_s[index(c.algorithm)][index(c.protocol)];
    switch (c.algorithm) {
      case Algorithm::ring:
        return ring_latency_s(c, base);
      case Algorithm::tree:
        return base + 2 * ((graph_.local - 1) * local_step_s(c) + depth() * network_step_s(c));
      case Algorithm::nvls:
        return base + local_step_s(c);
      case Algorithm::nvls_tree:
        return base + constants_.step_latency_s[index(Wire::nvlink)][index(c.algorithm)][index(c.protocol)] +
               2 * depth() * network_step_s(c);
      case Algorithm::pat:
        return base + depth() * network_step_s(c) / 3.5 + 2.8e-6 * graph_.members;
    }
    return base;
  }

  // Bytes of the buffer per second.
  double rate(Candidate c) const {
    switch (c.algorithm) {
      case Algorithm::ring:
        return ring_rate(c.protocol) * graph_.members / ring_steps();
      case Algorithm::tree:
        return tree_rate(c.protocol) / 2;
      case Algorithm::nvls:
      case Algorithm::nvls_tree:
        return nvls_rate() * graph_.heads * graph_.members / ring_steps();
      case Algorithm::pat:
        return 0.75 * graph_.bus_rate * graph_.members / ring_steps();
    }
    return 0;
  }

  // NCCL assumes one NVLSTree channel for each GPU of a node, but it opens as many as eight GPUs have. Each
  // node sends the buffer out once to a single other node, or twice to several nodes: up and down one tree,
  // and as a leaf of its mirror (Sanders, Speck, Traeff 2009). Inside a node, 1 + 1/g of the buffer leaves
  // each of g GPUs.
  double wire_rate(Candidate c) const {
    if (c.algorithm != Algorithm::nvls_tree) return rate(c);
    const double channels = std::max(kGpusOfChannels, graph_.heads);
    const double of_channels =
        channels * constants_.nvls_tree_most[generation()][column()] * graph_.members / ring_steps();
    const double between = graph_.ring_nics * graph_.nic_rate / (graph_.nodes == 2 ? 1 : 2);
    const double inside =
        graph_.link_rate * constants_.nvls_efficiency[generation()] / (1 + 1 / graph_.local);
    return std::min({of_channels, between, inside});
  }

 private:
  std::size_t generation() const { return index(graph_.generation); }
  std::size_t column() const { return static_cast<std::size_t>(std::min(graph_.nodes, 3) - 1); }
  double depth() const { return std::floor(std::log2(graph_.nodes)); }

  double ring_steps() const {
    if (op_ == CollectiveOp::all_reduce) return 2.0 * (graph_.members - 1);
    return op_ == CollectiveOp::broadcast ? graph_.members : graph_.members - 1;
  }

  double local_step_s(Candidate c) const {
    const double step = constants_.step_latency_s[index(graph_.wire)][index(c.algorithm)][index(c.protocol)];
    if (graph_.nodes == 1) return step;
    return std::max(step, kNetworkOverhead_s * (c.protocol == Protocol::simple ? 3 : 1));
  }

  // The latency of the NIC counts twice for Simple, because Simple flushes.
  double network_step_s(Candidate c) const {
    const bool leaves_at_once = c.algorithm == Algorithm::ring && graph_.local <= 1;
    const Algorithm row = leaves_at_once ? Algorithm::tree : c.algorithm;
    return constants_.step_latency_s[index(Wire::network)][index(row)][index(c.protocol)] +
           graph_.slow_network_s * (c.protocol == Protocol::simple ? 2 : 1);
  }

  double ring_latency_s(Candidate c, double base) const {
    if (op_ == CollectiveOp::broadcast)
      return base + (graph_.nodes > 1 ? network_step_s(c) : broadcast_step_s(c));
    const double remote = (op_ == CollectiveOp::all_reduce ? 2 : 1) * (graph_.nodes - 1);
    const double latency = base + (ring_steps() - remote) * local_step_s(c) + remote * network_step_s(c);
    const bool plateau = c.protocol == Protocol::simple && op_ == CollectiveOp::all_reduce &&
                         graph_.nodes > 1 && bytes_ / (graph_.channels * graph_.members) >= 64;
    if (!plateau) return latency;
    return latency * (graph_.generation == Generation::volta ? 1.9 : 1.4);
  }

  double broadcast_step_s(Candidate c) const {
    if (c.protocol != Protocol::simple) return local_step_s(c);
    return constants_.step_latency_s[index(graph_.wire)][index(Algorithm::tree)][index(c.protocol)];
  }

  // Within a node, by the GPU's generation. Across nodes, by the CPU's vendor; Intel's row is taken.
  double ll_most() const {
    return constants_.ll_most[graph_.nodes == 1 ? generation() : index(Generation::volta)][column()];
  }

  // NCCL counts channels before they are doubled. Otherwise faster links, with fewer channels of a greater
  // speed, would seem to carry less.
  double of_channels(const ByGeneration& most) const {
    return kChannelsAfterSearch * graph_.channels * most[generation()][column()];
  }

  double ring_rate(Protocol protocol) const {
    if (protocol == Protocol::ll) return std::min(ll_most(), graph_.bus_rate / 2);
    if (protocol == Protocol::simple) return graph_.bus_rate;
    return std::min(0.92 * graph_.bus_rate, of_channels(constants_.ring_ll128_most));
  }

  double tree_rate(Protocol protocol) const {
    double rate = std::min(0.92 * graph_.bus_rate, of_channels(constants_.tree_most));
    if (protocol == Protocol::ll) rate = std::min(rate / 3.8, ll_most());
    if (protocol == Protocol::ll128) {
      const double kept = graph_.nodes == 1 ? 7.0 / 9 : 120.0 / 128;
      rate = std::min(rate * kept, of_channels(constants_.tree_ll128_most));
    }
    const std::vector<double>& correction = constants_.tree_correction[index(protocol)];
    const double size = std::floor(std::log2(std::max(bytes_ / 64, 1.0)));
    const bool corrected = size < kCorrectedSizes && size < static_cast<double>(correction.size());
    return corrected ? rate * correction[static_cast<std::size_t>(size)] : rate;
  }

  // The rate of one head.
  double nvls_rate() const {
    const double share = (graph_.heads - 1) / graph_.heads;
    const double uses = op_ == CollectiveOp::all_reduce ? 2 : (graph_.local - 1) / graph_.local;
    const double in_node = graph_.head_rate * constants_.nvls_efficiency[generation()] * share * uses;
    if (graph_.nodes == 1) return in_node;
    const double across =
        graph_.nic_rate * (graph_.nodes == 2 ? 2 : 1) * std::min(1.0, graph_.ring_nics / graph_.heads);
    return std::min({in_node, across, constants_.nvls_tree_most[generation()][column()]});
  }

  const Constants& constants_;
  const Graph& graph_;
  CollectiveOp op_;
  double bytes_;
};

// A rank's own share stays with it. The others leave through its link, or through its part of the NICs.
double point_to_point_rate(const Graph& graph, CollectiveOp op) {
  if (op == CollectiveOp::send_receive)
    return graph.nodes == 1 ? graph.link_rate : graph.nics / graph.local * graph.nic_rate;
  const double near = (graph.local - 1) / graph.members / graph.link_rate;
  if (graph.nodes == 1) return 1 / near;
  const double far =
      (graph.members - graph.local) / graph.members * graph.local / (graph.nics * graph.nic_rate);
  return 1 / std::max(near, far);
}

Choice point_to_point(const Constants& constants, const Graph& graph, CollectiveOp op, Protocol protocol) {
  const Wire wire = graph.nodes > 1 ? Wire::network : graph.wire;
  const bool simple = protocol == Protocol::simple;
  const double latency = constants.base_latency_s[index(Algorithm::ring)][index(protocol)] +
                         constants.step_latency_s[index(wire)][index(Algorithm::ring)][index(protocol)] +
                         (simple ? 2 : 1) * graph.slow_network_s;
  const double rate = (simple ? 1 : 0.5) * point_to_point_rate(graph, op);
  return Choice{Algorithm::ring, protocol, latency, rate, rate};
}

Choice choose_point_to_point(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes) {
  const Choice ll = point_to_point(constants, graph, op, Protocol::ll),
               simple = point_to_point(constants, graph, op, Protocol::simple);
  return ll.seconds(bytes) < simple.seconds(bytes) ? ll : simple;
}

Choice choice_of(const Tuning& tuning, Candidate candidate) {
  return {candidate.algorithm, candidate.protocol, tuning.latency_s(candidate), tuning.wire_rate(candidate),
          tuning.rate(candidate)};
}

Choice choose_collective(const Tuning& tuning, double bytes, std::optional<Algorithm> forced) {
  constexpr Algorithm kAll[] = {Algorithm::ring, Algorithm::tree, Algorithm::nvls, Algorithm::nvls_tree,
                                Algorithm::pat};
  Choice best;
  double least = std::numeric_limits<double>::infinity();
  for (const Algorithm algorithm : kAll) {
    if (forced && *forced != algorithm) continue;
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      const Candidate candidate{algorithm, protocol};
      if (!tuning.runs(candidate)) continue;
      const Choice choice = choice_of(tuning, candidate);
      const double expected = choice.latency_s + bytes / choice.believed_rate;
      if (expected >= least) continue;
      least = expected;
      best = choice;
    }
  }
  return best;
}

bool is_point_to_point(CollectiveOp op) {
  return op == CollectiveOp::all_to_all || op == CollectiveOp::send_receive;
}

}  // namespace

Choice choose(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes,
              std::optional<Algorithm> forced) {
  if (is_point_to_point(op)) return choose_point_to_point(constants, graph, op, bytes);
  const Tuning tuning(constants, graph, op, bytes);
  if (forced) {
    const Choice choice = choose_collective(tuning, bytes, forced);
    if (choice.rate > 0) return choice;
  }
  return choose_collective(tuning, bytes, {});
}

Choice believe(const Constants& constants, const Graph& graph, CollectiveOp op, double bytes,
               const Choice& choice) {
  if (is_point_to_point(op)) return point_to_point(constants, graph, op, choice.protocol);
  return choice_of(Tuning(constants, graph, op, bytes), {choice.algorithm, choice.protocol});
}

}  // namespace rehearse::nccl
