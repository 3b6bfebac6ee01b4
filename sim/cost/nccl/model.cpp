#include "cost/nccl/model.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace rehearse::nccl {

namespace {

double fade(double octaves) {
  return std::max(0.0, 1 - octaves / kFade);
}

// Log ratio of a message that is smaller than the smallest measured one. The time of its bytes keeps the
// measured ratio. The ratio of its start time fades.
double log_ratio_below(double log_ratio, double smallest, double bytes, const Choice& believed) {
  const double starts_s = believed.latency_s, bytes_s = bytes / believed.rate;
  const double of_starts = log_ratio * fade(std::log2(smallest / bytes));
  return std::log((std::exp(of_starts) * starts_s + std::exp(log_ratio) * bytes_s) / (starts_s + bytes_s));
}

// Whether the group has as many NICs in each node as measured groups have.
bool lies_evenly(const GroupShape& group) {
  return group.nodes == 1 || std::round(group.ring_nics()) == std::round(group.local() / group.per_nic);
}

bool matches(const Measured& table, const GroupShape& group, CollectiveOp op,
             std::optional<Algorithm> forced) {
  return table.op == op && table.members == group.members && table.nodes == group.nodes &&
         table.forced == forced && lies_evenly(group);
}

// As many ranks on a system whose nodes may have other numbers of GPUs and NICs.
GroupShape on_system(const Cluster& system, const Cluster& cluster, GroupShape group) {
  const Node &there = system.node, &here = cluster.node;
  const int least_nodes = (group.members + there.gpus - 1) / there.gpus;
  const bool as_many_nics = there.nics * here.gpus == here.nics * there.gpus;
  if (group.nodes == 1 || there.nics == 0 || (as_many_nics && least_nodes <= group.nodes)) return group;
  const double share = group.ring_nics() / (group.local() / group.per_nic);  // of those of an even group
  group.nodes = std::max(group.nodes, least_nodes);
  const int local = (group.members + group.nodes - 1) / group.nodes;
  std::set<int> used;
  for (int gpu = 0; gpu < local; ++gpu) used.insert(system.nic_of(gpu));
  group.fewest_nics = std::max(1.0, std::round(share * static_cast<double>(used.size())));
  group.per_nic = std::max(1.0, static_cast<double>(local) / static_cast<double>(used.size()));
  return group;
}

}  // namespace

CollectiveOp family(CollectiveOp op) {
  return op == CollectiveOp::reduce_scatter ? CollectiveOp::all_gather : op;
}

double read_at(const Correction& correction, double bytes, const Choice& believed) {
  const std::vector<double>& points = correction.log_ratio;
  if (points.empty()) return 0;
  const double at = (std::log2(bytes) - correction.first_octave) / kOctaves;
  const double last = static_cast<double>(points.size() - 1);
  if (at <= 0) return log_ratio_below(points.front(), std::exp2(correction.first_octave), bytes, believed);
  if (at >= last) return points.back() * fade((at - last) * kOctaves);
  const auto below = static_cast<std::size_t>(at);
  const double share = at - static_cast<double>(below);
  return points[below] * (1 - share) + points[below + 1] * share;
}

bool matches(const Correction& correction, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
             std::optional<std::size_t> system) {
  return correction.across == (group.nodes > 1) && (!correction.op || *correction.op == family(op)) &&
         (!correction.generation || *correction.generation == generation_of(cluster)) &&
         (correction.link.empty() || correction.link == link_kind(cluster, group)) &&
         (!correction.system || correction.system == system);
}

Graphs graphs_of(const Model& model, const Cluster& cluster, const GroupShape& group) {
  Graphs graphs;
  graphs.nearest = nearest_system(model, cluster, group.nodes > 1 ? Reach::cluster : Reach::node);
  graphs.measured = group;
  graphs.known = graphs.own = graph_of(model.constants, cluster, group);
  if (graphs.nearest.system == nullptr || graphs.nearest.likeness.distance == 0) return graphs;
  const Cluster& system = graphs.nearest.system->cluster;
  graphs.measured = on_system(system, cluster, group);
  graphs.known = graph_of(model.constants, system, graphs.measured);
  if (group.nodes == 1) graphs.own.channels = graphs.known.channels;
  return graphs;
}

System::System(const Model& model, const Cluster& cluster, const GroupShape& group, CollectiveOp op,
               std::optional<Algorithm> forced)
    : model_(model), op_(op), forced_(forced), graphs_(graphs_of(model, cluster, group)) {
  const Nearest& nearest = graphs_.nearest;
  for (const Measured& table : model.measured) {
    if (table.system != nearest.index && table.system != nearest.corrections) continue;
    if (!matches(table, graphs_.measured, op, forced)) continue;
    if (measured_ == nullptr || table.how < measured_->how) measured_ = &table;
  }
  known_ = measured_ != nullptr;
  for (const Correction& correction : model.corrections) {
    if (!nccl::matches(correction, cluster, group, op, nearest.corrections)) continue;
    corrections_[corrected_++] = &correction;
    known_ = known_ || !correction.link.empty() || correction.system;
  }
  for (const Measured::Row& row : measured_rows()) {
    const Choice choice = believed_where_measured(row.bytes);
    rows_log_ratio_.push_back(std::log(row.seconds / choice.seconds(row.bytes)) -
                              log_ratio_of_class(row.bytes, choice));
  }
}

const std::vector<Measured::Row>& System::measured_rows() const {
  static const std::vector<Measured::Row> none;
  return measured_ == nullptr ? none : measured_->rows;
}

Choice System::believed_where_measured(double bytes) const {
  return choose(model_.constants, graphs_.known, op_, bytes, forced_);
}

Choice System::believed_here(double bytes, const Choice& where_measured) const {
  if (graphs_.nearest.likeness.distance == 0) return where_measured;
  return believe(model_.constants, graphs_.own, op_, bytes, where_measured);
}

Choice System::believed(double bytes) const {
  return believed_here(bytes, believed_where_measured(bytes));
}

double System::log_ratio_of_class(double bytes, const Choice& choice) const {
  double sum = 0;
  for (std::size_t i = 0; i < corrected_; ++i) sum += read_at(*corrections_[i], bytes, choice);
  return sum;
}

double System::log_ratio_of_measured(double bytes, const Choice& choice) const {
  if (measured_ == nullptr) return 0;
  const std::vector<Measured::Row>& rows = measured_->rows;
  const auto above = std::ranges::lower_bound(rows, bytes, {}, &Measured::Row::bytes);
  if (above == rows.end()) return rows_log_ratio_.back() * fade(std::log2(bytes / rows.back().bytes));
  const auto at = static_cast<std::size_t>(above - rows.begin());
  if (at == 0) return log_ratio_below(rows_log_ratio_.front(), above->bytes, bytes, choice);
  const Measured::Row& below = rows[at - 1];
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return rows_log_ratio_[at - 1] * (1 - share) + rows_log_ratio_[at] * share;
}

double System::log_ratio(double bytes) const {
  const Choice choice = believed_where_measured(bytes);
  return log_ratio_of_class(bytes, choice) + log_ratio_of_measured(bytes, choice);
}

double System::seconds(double bytes) const {
  const Choice choice = believed_where_measured(bytes);
  return believed_here(bytes, choice).seconds(bytes) *
         std::exp(log_ratio_of_class(bytes, choice) + log_ratio_of_measured(bytes, choice));
}

double round_s(const Model& model, const Cluster& cluster, double bytes, const GroupShape& group) {
  if (group.members <= 1) return 0;
  const System system(model, cluster, group, CollectiveOp::broadcast);
  const Protocol protocol = system.believed(std::max(bytes, 1.0)).protocol;
  const Algorithm row = protocol == Protocol::simple ? Algorithm::tree : Algorithm::ring;
  const Wire wire = group.nodes > 1 ? Wire::network : system.graph().wire;
  return group.members * model.constants.step_latency_s[index(wire)][index(row)][index(protocol)];
}

}  // namespace rehearse::nccl
