// How does the time of a collective grow with its size?
#pragma once

#include <optional>
#include <vector>

#include "cost/nccl/model.h"

namespace rehearse::nccl {

struct Knot {
  double bytes = 0;
  double seconds = 0;
  double weight = 1;
};

// Isotonic regression: the times, in order of size, that never fall and are nearest to the given ones by the
// weighted sum of |log| of the ratios (Robertson and Wright 1980: pools of falling times take their median).
// Of an even pool it is the lower median: disturbances make messages slower, never faster.
std::vector<Knot> without_falls(std::vector<Knot> knots);

// One group and operation on one cluster, for messages of any size. Between knots time is linear in bytes, so
// it never falls as bytes grow. Where no pool is needed, it passes through measured times. Keeps no
// reference.
class TimeCurve {
 public:
  TimeCurve(const Model& model, const Cluster& cluster, CollectiveOp op, const GroupShape& group,
            std::optional<Algorithm> forced = {});

  // latency + transfer. The transfer is the time of the bytes at the rate of the largest messages: links are
  // busy for that time. The latency is the rest: starts, steps and the filling of pipelines leave links idle.
  // Two lower bounds hold: the bytes that must cross a GPU's link or a node's NICs, and the messages that the
  // NICs must start (NicLimits). No time for a group of one.
  CommunicationTime at(double bytes) const;

 private:
  double between_knots(double bytes) const;

  std::vector<Knot> knots_;  // none for a group of one
  double least_s_ = 0;       // to start messages
  double least_s_per_byte_ = 0;
  double transfer_s_per_byte_ = 0;
  bool extrapolated_ = false;
};

}  // namespace rehearse::nccl
