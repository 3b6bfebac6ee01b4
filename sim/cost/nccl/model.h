// How long does NCCL take for a collective on this cluster: as it believes, corrected by what was measured?
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/nccl/systems.h"
#include "cost/nccl/tuning.h"
#include "cost/profile.h"

namespace rehearse::nccl {

// log(measured / believed) of a class of systems, at sizes 2^(octave) apart by kOctaves; straight lines
// between them, fading to nothing within kFade octaves above them; below them the rate of bytes keeps the
// first and the time of starts fades. A field that is not set matches all.
struct Correction {
  bool across = false;             // several nodes, or one
  std::optional<CollectiveOp> op;  // all_gather stands for reduce_scatter too
  std::optional<Generation> generation;
  std::string link;                   // link_kind(); empty: any
  std::optional<std::size_t> system;  // of Model::systems
  int tables = 0;
  int first_octave = 0;
  std::vector<double> log_ratio;
};

constexpr int kOctaves = 2;
constexpr double kFade = 6;
constexpr std::size_t kLevels = 16;  // with or without op, generation, link and system: no more can match

// What was measured on one system; it stands as measured, and outranks every correction.
struct Measured {
  std::size_t system = 0;  // of Model::systems
  CollectiveOp op = CollectiveOp::all_reduce;
  int nodes = 1;
  int members = 1;
  std::optional<Algorithm> forced;
  How how = How::published;
  std::vector<std::string> tables;  // files that the rows come from
  struct Row {
    double bytes = 0;
    double seconds = 0;
  };
  std::vector<Row> rows;  // at least one; bytes grow
};

// Errors are counted apart for messages up to 32 KiB (0), to 64 MiB (1), and above (2).
inline std::size_t size_class(double bytes) {
  constexpr double kSmall = 32 * 1024, kMiddle = 64.0 * 1024 * 1024;
  return bytes <= kSmall ? 0 : bytes <= kMiddle ? 1 : 2;
}

struct Model {
  std::string name;
  Constants constants;
  std::vector<KnownSystem> systems;
  std::vector<Correction> corrections;
  std::vector<Measured> measured;
  // By size class: 90th percentile of |predicted / measured - 1| of tables left out of the fit.
  std::array<double, 3> left_out_p90{};
};

// What NCCL finds for a group on a cluster, and on the system that the cluster is like, where there is one.
// `own` is laid out in the channels of that system: they say how often blocks start, not how fast links are.
struct Graphs {
  Nearest nearest;
  Graph own;
  Graph known;  // as `own` where the cluster is like none
};
Graphs graphs_of(const Model& model, const Cluster& cluster, const GroupShape& group);

// One group on one cluster, made ready for messages of any size. Keeps references to its arguments.
//
// Where the cluster is like a measured system but for some figures, what was measured is carried over as the
// ratio of what NCCL believes of the same algorithm and protocol on both.
class System {
 public:
  System(const Model& model, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
         std::optional<Algorithm> forced = {});

  Choice believed(double bytes) const;
  double log_ratio_of_class(double bytes) const;
  double log_ratio(double bytes) const;  // of the class, and of what was measured on this very system
  const Graph& graph() const { return graphs_.own; }
  bool known() const { return known_; }  // some table of this kind of GPU and link, or of such a system

 private:
  Choice believed_where_measured(double bytes) const;
  double log_ratio_of_row(const Measured::Row& row) const;
  double log_ratio_of_measured(double bytes) const;

  const Model& model_;
  CollectiveOp op_;
  std::optional<Algorithm> forced_;
  Graphs graphs_;
  const Measured* measured_ = nullptr;
  std::array<const Correction*, kLevels> corrections_{};  // those that match
  std::size_t corrected_ = 0;
  bool known_ = false;
};

// latency + transfer. The transfer is what the bytes take at the rate that the largest messages reach, for
// that time links are busy; the rest, starts, steps and the filling of pipelines, leaves them idle. Never
// faster than the bytes that must cross a GPU's link or a node's NICs, and the messages that these must start
// (NicLimits). No time for a group of one.
CommunicationTime collective_time(const Model& model, const Cluster& cluster, CollectiveOp op, double bytes,
                                  const GroupShape& group, std::optional<Algorithm> forced = {});

// Seconds that a broadcast takes from its root to the last rank of the ring: a step for each rank, as NCCL
// counts them where channels take different ways through a node (tuning.cc, ncclTopoTuneModel). None for a
// group of one.
double round_s(const Model& model, const Cluster& cluster, double bytes, const GroupShape& group);

// reduce_scatter, which mirrors all_gather, is corrected with it.
CollectiveOp family(CollectiveOp op);

// Value of a correction at a size, of which `believed` is NCCL's belief.
double read_at(const Correction& correction, double bytes, const Choice& believed);

// `system`: whose corrections apply to the cluster, an index of Model::systems.
bool matches(const Correction& correction, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
             std::optional<std::size_t> system);

}  // namespace rehearse::nccl
