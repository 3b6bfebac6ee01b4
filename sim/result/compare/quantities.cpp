#include "result/compare/quantities.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "plan/ranks.h"

namespace rehearse {

namespace {

// Components of a time may be negative by rounding.
constexpr Bounds kParts{Dimension::seconds, -1e-6, 1e30};
constexpr Bounds kSizes{Dimension::bytes, 0, 1e24};
constexpr Bounds kShares{Dimension::one, 0, 1e6};
constexpr Bounds kCounts{Dimension::one, 0, 1e30};

Bounds bounds_of(Measure measure) {
  switch (measure) {
    case Measure::seconds:
      return kParts;
    case Measure::bytes:
      return kSizes;
    case Measure::share:
      return kShares;
    case Measure::count:
      break;
  }
  return kCounts;
}

struct Figure {
  const char* key;
  Measure measure;
};

constexpr std::array kRates = {Figure{"tokens_per_s", Measure::count},
                               Figure{"tokens_per_s_per_gpu", Measure::count},
                               Figure{"samples_per_s", Measure::count},
                               Figure{"model_tflops_per_gpu", Measure::count},
                               Figure{"hardware_tflops_per_gpu", Measure::count},
                               Figure{"mfu", Measure::share},
                               Figure{"hfu", Measure::share}};
constexpr std::array kBubbles = {Figure{"mean", Measure::share}, Figure{"worst", Measure::share}};
constexpr std::array kCommunication = {
    Figure{"calls", Measure::count}, Figure{"bytes_per_rank", Measure::bytes},
    Figure{"busy_s", Measure::seconds}, Figure{"exposed_s", Measure::seconds}};
constexpr std::array kMemory = {
    Figure{"parameters_bytes", Measure::bytes}, Figure{"gradients_bytes", Measure::bytes},
    Figure{"optimizer_bytes", Measure::bytes},  Figure{"activations_bytes", Measure::bytes},
    Figure{"logits_bytes", Measure::bytes},     Figure{"buffers_bytes", Measure::bytes},
    Figure{"peak_bytes", Measure::bytes}};

template <typename Figures>
void add(const JsonReader& reader, const std::string& prefix, const Figures& figures,
         std::vector<Quantity>& quantities) {
  for (const Figure& figure : figures)
    quantities.push_back(
        {prefix + figure.key, figure.measure, reader.number(figure.key, bounds_of(figure.measure))});
}

// Reports of 0.2.0 and before do not name the group.
void add_communication(const JsonReader& report, std::vector<Quantity>& quantities) {
  for (const JsonReader& line : report.objects("communication")) {
    const std::string group = line.text_or("group", "");
    const std::string name =
        fmt::format("communication.{}.{}.{}.{}", line.text("kind"), line.text("op"),
                    line.integer("group_size", 1, std::int64_t{1} << 40), group.empty() ? "" : group + ".");
    add(line, name, kCommunication, quantities);
  }
}

std::int64_t rank_of(const JsonReader& rank) {
  return rank.integer("rank", 0, std::numeric_limits<int>::max());
}

// The grid of ranks, from the degrees in the report's plan.
RankGrid grid_of(const JsonReader& plan) {
  const auto degree = [&](const char* key) { return static_cast<int>(plan.integer_or(key, 1, 1, 1 << 20)); };
  Plan grid;
  grid.tp = degree("tp");
  grid.cp = degree("cp");
  grid.dp = degree("dp");
  grid.pp = degree("pp");
  if (!plan.has("order")) return RankGrid(grid);
  const Json& order = plan.value("order");
  if (!order.is_array()) plan.fail("order", "must be an array of axes", "found " + order.dump());
  for (std::size_t i = 0; i < grid.order.size() && i < order.size(); ++i)
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp})
      if (order[i] == to_string(axis)) grid.order[i] = axis;
  return RankGrid(grid);
}

std::string allocated_name(std::int64_t rank) {
  return fmt::format("memory.rank{}.allocated_bytes", rank);
}

std::vector<Quantity> measured_allocations(const JsonReader& report, const JsonReader& execution) {
  constexpr const char* kKey = "peak_activation_bytes_by_rank";
  const std::vector<double> bytes = execution.numbers(kKey, kSizes);
  const RankGrid grid = grid_of(report.object("plan"));
  std::map<int, double> most;
  for (int rank = 0; rank < std::min(grid.size(), static_cast<int>(bytes.size())); ++rank) {
    const int pipeline_rank = grid.coordinates(rank)[static_cast<std::size_t>(Axis::pp)];
    double& value = most[pipeline_rank];
    value = std::max(value, bytes[static_cast<std::size_t>(rank)]);
  }
  std::vector<Quantity> quantities;
  for (const auto& [rank, value] : most) quantities.push_back({allocated_name(rank), Measure::bytes, value});
  return quantities;
}

}  // namespace

std::vector<Quantity> report_quantities(const JsonReader& report) {
  std::vector<Quantity> quantities = {
      {"step_time_s", Measure::seconds, report.number("step_time_s", physical::kStepTime)}};
  add(report, "", kRates, quantities);
  add(report.object("bubble_fraction"), "bubble_fraction.", kBubbles, quantities);
  const JsonReader time = report.object("time_s");
  for (const auto& part : time.json().items())
    add(time, "time_s.", std::array{Figure{part.key().c_str(), Measure::seconds}}, quantities);
  add_communication(report, quantities);
  const JsonReader memory = report.object("memory");
  add(memory, "memory.", std::array{Figure{"peak_bytes", Measure::bytes}}, quantities);
  for (const JsonReader& rank : memory.objects("ranks"))
    add(rank, fmt::format("memory.rank{}.", rank_of(rank)), kMemory, quantities);
  return quantities;
}

std::vector<Quantity> allocated_quantities(const JsonReader& report) {
  if (report.has("execution")) {
    const JsonReader execution = report.object("execution");
    if (execution.has("peak_activation_bytes_by_rank")) return measured_allocations(report, execution);
  }
  std::vector<Quantity> quantities;
  if (report.text_or("source", "") == "execute") return quantities;
  for (const JsonReader& rank : report.object("memory").objects("ranks"))
    quantities.push_back({allocated_name(rank_of(rank)), Measure::bytes,
                          rank.number("activations_bytes", kSizes) + rank.number("logits_bytes", kSizes)});
  return quantities;
}

std::vector<Quantity> timeline_quantities(const Timeline& timeline, const Schedule& schedule) {
  struct Total {
    double count = 0, seconds = 0;
  };
  std::map<OpKind, Total> kinds;
  std::map<int, double> bubbles;
  for (const TimelineRank& rank : timeline.ranks) {
    const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
    const double bubble = bubble_fraction(rank, ops, timeline.end());
    if (!bubbles.emplace(rank.instance.pipeline_rank, bubble).second) continue;  // a replica
    for (std::size_t i = 0; i < ops.size(); ++i) {
      Total& total = kinds[ops[i].kind];
      total.count += ops[i].part == 0;
      total.seconds += rank.spans[i].seconds();
    }
  }
  std::vector<Quantity> quantities;
  for (const auto& [rank, bubble] : bubbles)
    quantities.push_back({fmt::format("bubble_fraction.rank{}", rank), Measure::share, bubble});
  for (const auto& [kind, total] : kinds) {
    quantities.push_back({fmt::format("ops.{}.count", to_string(kind)), Measure::count, total.count});
    quantities.push_back({fmt::format("ops.{}.mean_s", to_string(kind)), Measure::seconds,
                          total.seconds / std::max(1.0, total.count)});
  }
  return quantities;
}

}  // namespace rehearse
