#include <fmt/format.h>

#include <algorithm>

#include "calibrate/import/tables.h"
#include "cost/collectives.h"

namespace rehearse {

namespace {

// A table's row seen through the cost model: time = latency + known + unit / efficiency.
struct Row {
  double seconds = 0;  // measured
  double known = 0;    // steps
  double unit = 0;     // transfer at the nominal bandwidth
};

CollectiveOp op_of(const Json& table, const std::string& file) {
  static const std::map<std::string, CollectiveOp> names = {{"all_reduce", CollectiveOp::all_reduce},
                                                            {"all_gather", CollectiveOp::all_gather},
                                                            {"reduce_scatter", CollectiveOp::reduce_scatter},
                                                            {"alltoall", CollectiveOp::all_to_all},
                                                            {"sendrecv", CollectiveOp::send_receive}};
  const auto found = names.find(table.at("op").get<std::string>());
  if (found == names.end()) throw InputError({file, "/op", "is no collective of the cost model", "", ""});
  return found->second;
}

// The link to fit with nothing but its nominal bandwidth and steps; a ring so slow that NVLS, where it is
// what is fitted, ends first; inside the nodes what is known already.
Profile unit_profile(const LinkCost& link, const std::vector<LinkCost>& known) {
  Profile profile;
  profile.links = known;
  std::erase_if(profile.links, [&](const LinkCost& other) {
    return other.op == "nvls" || (other.op == link.op && other.kind == link.kind);
  });
  profile.links.push_back(link);
  if (link.op == "nvls") {
    for (LinkCost& other : profile.links) {
      if (other.op == "ring") other.efficiency = 1e-6;
    }
  }
  return profile;
}

// The machine of a table. Ports that are not fitted never bind.
Cluster machine_of(const Json& table, const std::string& kind, double bandwidth, int nics) {
  constexpr double kNeverBinds = 1e18;
  Cluster cluster;
  cluster.node.gpus = table.at("gpus_per_node");
  const bool across = table.at("n_nodes").get<int>() > 1;
  cluster.node.gpu_link = {across ? kNeverBinds : bandwidth, 0};
  cluster.node.gpu_link_kind = across ? "nvswitch" : kind;
  cluster.node.nics = nics;
  cluster.node.nic = {bandwidth, 0};
  cluster.node.nic_kind = kind;
  return cluster;
}

std::vector<Row> rows_of(const Entry& entry, const std::string& file, const LinkCost& link,
                         const std::vector<LinkCost>& known, std::vector<Source>& sources) {
  const Json table = read_json_file((entry.data / file).string());
  sources.push_back(
      source_of(table, fmt::format("{}; {} of kind {}", table.value("hardware", ""), link.op, link.kind)));
  const double least = entry.recipe.number("least_bytes", 1, 1e12);
  const Profile profile = unit_profile(link, known);
  const Cluster cluster = machine_of(table, link.kind, entry.recipe.number("bandwidth", 1, 1e15),
                                     static_cast<int>(entry.recipe.integer_or("nics", 0, 0, 64)));
  const int members = table.at("n_nodes").get<int>() * cluster.node.gpus;
  std::vector<int> ranks;
  for (int rank = 0; rank < members; ++rank) ranks.push_back(rank);
  std::vector<Row> rows;
  for (const Json& row : table.at("rows")) {
    const double bytes = row.at("bytes");
    if (bytes < least) continue;
    const CommunicationTime unit =
        collective_time(profile, cluster, op_of(table, file), bytes, group_shape(cluster, ranks));
    rows.push_back({row.at("time_us").get<double>() * 1e-6, unit.latency_s, unit.transfer_s});
  }
  return rows;
}

// Least squares of the relative error, so that every size counts alike; a latency below zero is zero.
void fit(const std::vector<Row>& rows, LinkCost& link, bool fit_latency) {
  double one = 0, cross = 0, square = 0, with_one = 0, with_unit = 0;
  for (const Row& row : rows) {
    const double weight = 1 / (row.seconds * row.seconds);
    const double rest = row.seconds - row.known - (fit_latency ? 0 : link.latency_s);
    one += weight;
    cross += weight * row.unit;
    square += weight * row.unit * row.unit;
    with_one += weight * rest;
    with_unit += weight * row.unit * rest;
  }
  const double determinant = one * square - cross * cross;
  if (fit_latency && determinant > 0) {
    link.latency_s = std::max(0.0, (with_one * square - with_unit * cross) / determinant);
    with_unit -= cross * link.latency_s;
  }
  link.efficiency = std::min(1.0, square / with_unit);
}

}  // namespace

ImportedLink import_link(const Entry& entry, const std::string& kind, const std::vector<LinkCost>& known,
                         std::vector<Source>& sources) {
  const JsonReader& recipe = entry.recipe;
  ImportedLink link;
  link.cost.kind = kind;
  link.cost.op = recipe.text("op");
  link.cost.how = recipe.choice<How>("how", {{"published", How::published}, {"modelled", How::modelled}});
  link.cost.step_latency_s = recipe.number("step_latency_s", 0, 1);
  link.cost.latency_s = recipe.number_or("latency_s", 0, 0, 1);
  link.cost.efficiency = recipe.number_or("efficiency", 1, 1e-6, 1);
  link.source = recipe.text("source");
  if (!recipe.has("tables")) return link;
  std::vector<Row> rows;
  for (const Json& file : recipe.value("tables")) {
    const std::vector<Row> more = rows_of(entry, file, link.cost, known, sources);
    rows.insert(rows.end(), more.begin(), more.end());
  }
  if (rows.empty()) recipe.fail("least_bytes", "no row of the tables is as large");
  fit(rows, link.cost, !recipe.has("latency_s"));
  link.cost.latency_s = rounded(link.cost.latency_s, 3);
  link.cost.efficiency = rounded(link.cost.efficiency, 3);
  return link;
}

}  // namespace rehearse
