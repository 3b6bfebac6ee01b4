#include "sweep/plot/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/quantity.h"
#include "sweep/plot/fields.h"

namespace rehearse::plot {

namespace {

// A fact's place in the report and in the scenario, and its words in a title.
struct Fact {
  const char* report;
  const char* scenario;
  const char* words;     // {} is the value
  const char* unspoken;  // a default that is not shown
};
constexpr std::array kFacts = {Fact{"/model/name", "/model", "{}", ""},
                               Fact{"/cluster/name", "/cluster", "{}", ""},
                               Fact{"/cluster/gpus", "/gpus", "{} GPUs", ""},
                               Fact{"/plan/tp", "/plan/tp", "tp {}", ""},
                               Fact{"/plan/pp", "/plan/pp", "pp {}", ""},
                               Fact{"/plan/vpp", "/plan/vpp", "vpp {}", "1"},
                               Fact{"/plan/dp", "/plan/dp", "dp {}", ""},
                               Fact{"/plan/cp", "/plan/cp", "cp {}", "1"},
                               Fact{"/plan/ep", "/plan/ep", "ep {}", "1"},
                               Fact{"/plan/micro_batch", "/plan/micro_batch", "microbatch {}", ""},
                               Fact{"/plan/global_batch", "/plan/global_batch", "global batch {}", ""},
                               Fact{"/plan/seq", "/plan/seq", "sequence {}", ""},
                               Fact{"/plan/schedule", "/plan/schedule", "{}", ""},
                               Fact{"/plan/zero", "/plan/zero", "ZeRO-{}", "0"},
                               Fact{"/plan/precision", "/plan/precision", "{}", ""},
                               Fact{"/plan/recompute", "/plan/recompute", "recompute {}", "none"}};

// Facts that all reports have in common, collected row by row.
class Held {
 public:
  explicit Held(const Grid& grid) {
    for (const SweptField& field : grid.fields) swept_.insert(field.pointer);
  }

  void add(const Json& report) {
    for (std::size_t i = 0; i < kFacts.size(); ++i) {
      const std::string text = text_of(report.at(Json::json_pointer(kFacts[i].report)));
      if (!values_[i]) values_[i] = text;
      if (*values_[i] != text) varies_[i] = true;
    }
  }

  std::string sentence() const {
    std::vector<std::string> held, follow;
    for (std::size_t i = 0; i < kFacts.size(); ++i) {
      const Fact& fact = kFacts[i];
      if (!values_[i] || swept_.contains(fact.scenario)) continue;
      if (varies_[i]) {
        std::string key = std::string(fact.report).substr(std::string(fact.report).rfind('/') + 1);
        std::ranges::replace(key, '_', ' ');
        follow.push_back(key);
      } else if (*values_[i] != fact.unspoken) {
        held.push_back(fmt::format(fmt::runtime(fact.words), *values_[i]));
      }
    }
    std::vector<std::string> sentences;
    if (!held.empty()) sentences.push_back(fmt::format("Fixed: {}.", join(held)));
    if (!follow.empty())
      sentences.push_back(fmt::format("{} follow{}.", join(follow), follow.size() == 1 ? "s" : ""));
    return join(sentences, " ");
  }

 private:
  std::set<std::string> swept_;
  std::array<std::optional<std::string>, kFacts.size()> values_;
  std::array<bool, kFacts.size()> varies_{};
};

void take_figures(const Json& report, PlotRow& row) {
  const auto figure = [&](const char* pointer) {
    return report.at(Json::json_pointer(pointer)).get<double>();
  };
  row.has_report = true;
  row.step_time_s = figure("/step_time_s");
  row.tokens_per_s_per_gpu = figure("/tokens_per_s_per_gpu");
  row.mfu = figure("/mfu");
  row.bubble = figure("/bubble_fraction/mean");
  row.ideal_bubble = figure("/bubble_fraction_ideal");
  if (report.contains("executed_step_time_s")) {
    row.executed_step_time_s = figure("/executed_step_time_s");
    row.executed_bubble = figure("/executed_bubble_fraction/mean");
  }
  row.needed_bytes = figure("/memory/needed_bytes");
  row.capacity_bytes = figure("/memory/capacity_bytes");
  row.gpus = figure("/cluster/gpus");
  row.microbatches = figure("/plan/microbatches");
  row.global_batch = figure("/plan/global_batch");
  for (std::size_t i = 0; i < kTimeParts.size(); ++i)
    row.time_s[i] = figure((std::string("/time_s/") + kTimeParts[i].key).c_str());
  for (const Json& line : report.at("communication"))
    for (std::size_t i = 0; i < kLinkClasses.size(); ++i)
      row.sent_bytes[i] += line.at(kLinkClasses[i].key).get<double>();
}

}  // namespace

PlotRows read_rows(const Store& store, const Grid& grid) {
  PlotRows read;
  Held held(grid);
  const std::optional<Point> fastest = store.fastest();
  store.each([&](Point point, const Row& row) {
    PlotRow& drawn = read.rows.emplace_back();
    drawn.values = grid.values_at(point);
    drawn.state = row.state;
    drawn.fastest = point == fastest;
    drawn.reason = row.reason;
    if (!row.report.is_object()) return;
    take_figures(row.report, drawn);
    held.add(row.report);
  });
  read.held = held.sentence();
  return read;
}

std::string refusal(const PlotRow& row) {
  return row.reason.empty() ? to_string(row.state) : fmt::format("{}: {}", to_string(row.state), row.reason);
}

std::string hint_of(const PlotRow& row, const Grid& grid) {
  const std::string name = values_in_words(row.values, grid, {});
  if (!row.has_report) return name + ": " + refusal(row);
  const std::string figures =
      fmt::format("{}: {}, {:.0f} tokens/s/GPU, idle {:.1f} %, {}", name, format_seconds(row.step_time_s),
                  row.tokens_per_s_per_gpu, 100 * row.bubble, format_bytes(row.needed_bytes));
  return row.fits() ? figures : figures + " (does not fit)";
}

}  // namespace rehearse::plot
