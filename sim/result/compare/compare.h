// How far do two runs differ, quantity by quantity?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "result/compare/quantities.h"

namespace rehearse {

// One of the two sides.
struct ComparedRun {
  std::string name;  // "predicted", or its file
  Json report;       // rehearse.report/1
  std::vector<Quantity> quantities;
};

struct QuantityPair {
  std::string name;
  Measure measure = Measure::count;
  std::optional<double> a, b;  // nothing where a side lacks it
  bool comparable =
      true;  // false: of different amounts of work, shown side by side alone and held by no gate

  // a / b - 1: the error of a prediction a against a measurement b. It is 0 when both are 0. Nothing when
  // only b is 0, a side lacks the quantity, or the two cannot be compared.
  std::optional<double> error() const;
};

// A field that differs: "plan.vpp", "model.name", ...
struct Otherwise {
  std::string field;
  Json a, b;
};

struct ReportComparison {
  ComparedRun a, b;
  std::vector<Otherwise> otherwise;
  std::vector<QuantityPair> pairs;  // in the order of a, then those that only b has
};

// InputError, naming the file, when a report lacks a required field.
ReportComparison compare_runs(ComparedRun a, ComparedRun b);

// The run of a report that was read or made; with a timeline, it has the timeline's quantities too.
ComparedRun compared_run(const std::string& name, Json report, const Timeline* timeline = nullptr,
                         const Schedule* schedule = nullptr);

// About 60 lines for a terminal.
std::string comparison_table(const ReportComparison& comparison);

// Schema "rehearse.comparison/1".
Json comparison_json(const ReportComparison& comparison);

}  // namespace rehearse
