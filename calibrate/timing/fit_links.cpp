#include "calibrate/timing/fit_links.h"

#include <algorithm>
#include <array>
#include <cmath>

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

// The best of all choices of terms whose costs are not negative: eight least-squares problems.
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

FittedLinks fit_links(const std::vector<MessageSample>& messages, const Port& port, const std::string& kind) {
  FittedLinks fitted;
  for (const bool send : {false, true}) {
    std::vector<Row> rows;
    for (const MessageSample& message : messages) {
      if (is_send(message) == send) rows.push_back(row_of(message));
    }
    if (rows.empty()) continue;
    std::array<double, 3> costs = fit(rows);
    const double floor = 1 / port.bandwidth;  // seconds a byte
    fitted.above_port = fitted.above_port || costs[2] < floor;
    costs[2] = std::max(costs[2], floor);
    fitted.links.push_back(
        {kind, send ? "send" : "ring", costs[0], costs[1], floor / costs[2], How::measured});
    for (const Row& row : rows)
      fitted.worst_error = std::max(fitted.worst_error, std::abs(predicted(row, costs) / row.seconds - 1));
  }
  return fitted;
}

}  // namespace rehearse
