// How is a comparison of two runs shown? As a table or JSON, one picture and one trace of both, and an exit
// code.
#pragma once

#include <string>
#include <vector>

#include "cli/verb.h"
#include "result/compare/compare.h"
#include "result/compare/read_trace.h"

namespace rehearse {

struct ComparisonOptions {
  bool json = false;
  std::string svg, trace, fail_above;
};
std::vector<VerbOption> comparison_options(ComparisonOptions& options);

// --fail-above, refused at once when invalid.
VerbOption gates_option(std::string& gates, const std::string& help);

// One side: a report, with its timeline and trace where they are known.
struct Side {
  std::string name;
  Json report;
  std::optional<RecordedRun> recorded;
  Json trace;
};

// A side from a file: a report, or a trace that --trace wrote. InputError for anything else.
Side read_side(const std::string& file);

// Writes the requested files and prints a against b. Returns kDone, or kGateFailed after printing the failed
// gates on standard error. `more` are drawn below them. InputError when a picture is requested and a side has
// no timeline, or when there are more and no picture is requested.
int show_comparison(const ComparisonOptions& options, const Side& a, const Side& b,
                    const std::vector<Side>& more = {});

// The same for two runs without timelines, with the quantities that both have. `of_other_work`: quantities
// that cannot be compared, since the runs do different amounts of work.
int show_common(const ComparisonOptions& options, const Side& a, ComparedRun b,
                const std::vector<std::string>& of_other_work);

}  // namespace rehearse
