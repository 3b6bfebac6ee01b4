// How long does NCCL take for a collective on this cluster: by its own cost model, corrected by measurements?
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cost/nccl/systems.h"
#include "cost/nccl/tuning.h"
#include "cost/profile.h"

namespace rehearse::nccl {

// log(measured / believed) of a class of systems, at sizes 2^(octave) apart by kOctaves. `believed` is the
// time of NCCL's own cost model. Between the sizes the ratio is interpolated linearly. Above them it fades to
// zero within kFade octaves. Below them the time of bytes keeps the first ratio, and the ratio of the start
// time fades. A field that is not set matches all.
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

// Times measured on one system. They are used as measured, and outrank every correction.
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

// Errors are counted separately for messages up to 32 KiB (0), up to 64 MiB (1), and above (2).
inline std::size_t size_class(double bytes) {
  constexpr double kSmall = 32 * 1024, kMiddle = 64.0 * 1024 * 1024;
  return bytes <= kSmall ? 0 : bytes <= kMiddle ? 1 : 2;
}

using BySize = std::array<double, 3>;

struct Model {
  std::string name;
  Constants constants;
  std::vector<KnownSystem> systems;
  std::vector<Correction> corrections;
  std::vector<Measured> measured;
  // 90th percentiles of |predicted / measured - 1|: of tables left out of the fit, and of tables whose whole
  // system was left out.
  BySize left_out_p90{}, system_left_out_p90{};
};

// Graphs that NCCL finds for a group: on the cluster, and on the measured system that the cluster resembles,
// if any. `own` is laid out in the channels of that system: they tell how often blocks start, not how fast
// links are.
struct Graphs {
  Nearest nearest;
  GroupShape measured;  // the group on that system
  Graph own;
  Graph known;  // as `own` where the cluster is like none
};
Graphs graphs_of(const Model& model, const Cluster& cluster, const GroupShape& group);

// One group on one cluster, prepared for messages of any size. Keeps references to its arguments.
//
// The cluster may resemble a measured system except for some figures. Then measured times are scaled by the
// ratio of NCCL's estimates on both, for the same algorithm and protocol.
class System {
 public:
  System(const Model& model, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
         std::optional<Algorithm> forced = {});

  Choice believed(double bytes) const;
  double log_ratio(double bytes) const;  // of the class, and of measurements on this very system
  double seconds(double bytes) const;    // as estimated for this size alone
  const std::vector<Measured::Row>& measured_rows() const;
  const Graph& graph() const { return graphs_.own; }
  bool known() const { return known_; }  // some table of this kind of GPU and link, or of such a system

 private:
  Choice believed_where_measured(double bytes) const;
  Choice believed_here(double bytes, const Choice& where_measured) const;
  double log_ratio_of_class(double bytes, const Choice& choice) const;
  double log_ratio_of_measured(double bytes, const Choice& choice) const;

  const Model& model_;
  CollectiveOp op_;
  std::optional<Algorithm> forced_;
  Graphs graphs_;
  const Measured* measured_ = nullptr;
  std::vector<double> rows_log_ratio_;                    // of the rows of measured_, beyond the class
  std::array<const Correction*, kLevels> corrections_{};  // the matching ones
  std::size_t corrected_ = 0;
  bool known_ = false;
};

// TimeCurve::at() of a curve that is made for this one size.
CommunicationTime collective_time(const Model& model, const Cluster& cluster, CollectiveOp op, double bytes,
                                  const GroupShape& group, std::optional<Algorithm> forced = {});

// Seconds that a broadcast takes from its root to the last rank of the ring. Each rank adds one step, as NCCL
// counts them where channels take different paths through a node (tuning.cc, ncclTopoTuneModel). 0 for a
// group of one.
double round_s(const Model& model, const Cluster& cluster, double bytes, const GroupShape& group);

// reduce_scatter, which mirrors all_gather, is corrected with it.
CollectiveOp family(CollectiveOp op);

// Value of a correction at a size. `believed` is NCCL's estimate for that size.
double read_at(const Correction& correction, double bytes, const Choice& believed);

// `system`: whose corrections apply to the cluster, an index of Model::systems.
bool matches(const Correction& correction, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
             std::optional<std::size_t> system);

}  // namespace rehearse::nccl
