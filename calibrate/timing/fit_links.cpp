#include "calibrate/timing/fit_links.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "cost/collectives.h"
#include "cost/links.h"

namespace rehearse {

namespace {

// A message as the cost model sees it: seconds = latency + steps * step latency + bytes / bandwidth.
struct Row {
  std::array<double, 3> terms = {};  // 1, steps, bytes
  double seconds = 0;
};

Row row_of(const MessageSample& message) {
  const auto n = static_cast<double>(message.members);
  const double share = (n - 1) / n;
  double steps = n - 1, bytes = share * message.bytes;
  if (message.op == "all_reduce") {
    steps *= 2;
    bytes *= 2;
  } else if (message.op == "broadcast") {
    bytes = message.bytes;
  } else if (message.op == "send_receive") {
    steps = 0;
    bytes = message.bytes;
  } else if (message.op == "all_to_all") {
    steps = 0;
  }
  return {{1, steps, bytes}, message.seconds};
}

// Between machines: rings as in cost/collectives.cpp, over all NICs that the group has in one machine.
Row row_across(const MessageSample& message, const Cluster& cluster, double local_step_s) {
  const auto nodes = static_cast<int>(message.nodes), local = static_cast<int>(message.members) / nodes;
  std::vector<int> ranks;
  for (int node = 0; node < nodes; ++node) {
    for (int gpu = 0; gpu < local; ++gpu) ranks.push_back(node * cluster.node.gpus + gpu);
  }
  const double ports = local / group_shape(cluster, ranks).per_nic * nics_of_a_gpu(cluster.node);
  Row row = row_of(message);
  auto& [latency, steps, bytes] = row.terms;
  const double rounds = steps / static_cast<double>(message.members - 1);
  row.seconds -= rounds * static_cast<double>(message.members - nodes) * local_step_s;
  steps = rounds * (nodes - 1);
  if (message.op == "all_to_all")
    bytes = message.bytes * static_cast<double>(message.members - local) /
            static_cast<double>(message.members) * local;
  bytes /= message.op == "send_receive" ? nics_of_a_gpu(cluster.node) : ports;
  return row;
}

bool is_send(const MessageSample& message) {
  return message.op == "send_receive" || message.op == "all_to_all";
}

// Normal equations over the chosen terms, solved by elimination with pivots; false when they are singular.
bool solve(const std::vector<Row>& rows, unsigned chosen, std::array<double, 3>& costs) {
  double a[3][4] = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (const Row& row : rows) a[i][j] += row.terms[i] * row.terms[j] / (row.seconds * row.seconds);
    }
    for (const Row& row : rows) a[i][3] += row.terms[i] / row.seconds;
    if ((chosen >> i & 1U) != 0) continue;
    for (std::size_t j = 0; j < 4; ++j) a[i][j] = i == j ? 1 : 0;  // held at zero
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (!(a[i][i] > 0)) return false;
    for (std::size_t other = 0; other < 3; ++other) {
      if (other == i) continue;
      const double factor = a[other][i] / a[i][i];
      for (std::size_t j = 0; j < 4; ++j) a[other][j] -= factor * a[i][j];
    }
  }
  for (std::size_t i = 0; i < 3; ++i) costs[i] = a[i][3] / a[i][i];
  return true;
}

double predicted(const Row& row, const std::array<double, 3>& costs) {
  return row.terms[0] * costs[0] + row.terms[1] * costs[1] + row.terms[2] * costs[2];
}

double squared_error(const std::vector<Row>& rows, const std::array<double, 3>& costs) {
  double sum = 0;
  for (const Row& row : rows) {
    const double error = predicted(row, costs) / row.seconds - 1;
    sum += error * error;
  }
  return sum;
}

// The best of all choices of terms with non-negative costs: eight least-squares problems.
std::array<double, 3> fit(const std::vector<Row>& rows) {
  std::array<double, 3> best = {};
  double least = INFINITY;
  for (unsigned chosen = 1; chosen < 8; ++chosen) {
    std::array<double, 3> costs = {};
    if (!solve(rows, chosen, costs) || *std::min_element(costs.begin(), costs.end()) < 0) continue;
    const double error = squared_error(rows, costs);
    if (error < least * (1 - 1e-9)) {
      least = error;
      best = costs;
    }
  }
  return best;
}

}  // namespace

namespace {

// Fits one cost to one kind of rows.
void add_fit(const std::vector<Row>& rows, const Port& port, const std::string& kind, const char* op,
             FittedLinks& fitted) {
  if (rows.empty()) return;
  std::array<double, 3> costs = fit(rows);
  const double floor = 1 / port.bandwidth;  // seconds a byte
  fitted.above_port = fitted.above_port || costs[2] < floor;
  costs[2] = std::max(costs[2], floor);
  fitted.links.push_back({kind, op, costs[0], costs[1], floor / costs[2], How::measured});
  for (const Row& row : rows)
    fitted.worst_error = std::max(fitted.worst_error, std::abs(predicted(row, costs) / row.seconds - 1));
}

template <typename ToRow>
FittedLinks fit_all(const std::vector<MessageSample>& messages, const Port& port, const std::string& kind,
                    const ToRow& to_row) {
  FittedLinks fitted;
  for (const bool send : {false, true}) {
    std::vector<Row> rows;
    for (const MessageSample& message : messages) {
      if (is_send(message) != send) continue;
      const Row row = to_row(message);
      if (row.seconds > 0) rows.push_back(row);
    }
    add_fit(rows, port, kind, send ? "send" : "ring", fitted);
  }
  return fitted;
}

std::vector<MessageSample> that_cross(bool across, const std::vector<MessageSample>& messages) {
  std::vector<MessageSample> chosen;
  for (const MessageSample& message : messages) {
    if ((message.nodes > 1) == across) chosen.push_back(message);
  }
  return chosen;
}

}  // namespace

FittedLinks fit_links(const std::vector<MessageSample>& messages, const Port& port, const std::string& kind) {
  return fit_all(that_cross(false, messages), port, kind, row_of);
}

FittedLinks fit_nics(const std::vector<MessageSample>& messages, const Cluster& cluster,
                     double local_step_s) {
  if (cluster.node.nics < 1) return {};
  return fit_all(that_cross(true, messages), cluster.node.nic, cluster.node.nic_kind,
                 [&](const MessageSample& message) { return row_across(message, cluster, local_step_s); });
}

FittedLinks fit_host_link(const std::vector<HostCopySample>& copies, const Port& port) {
  FittedLinks fitted;
  std::vector<Row> rows;
  for (const HostCopySample& copy : copies) rows.push_back({{1, 0, copy.bytes}, copy.seconds});
  add_fit(rows, port, kHostLink, "send", fitted);
  return fitted;
}

}  // namespace rehearse
