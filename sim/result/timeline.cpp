#include "result/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rehearse {

namespace {

[[noreturn]] void reject(std::size_t rank, const std::string& rule, const std::string& values) {
  throw InputError({"timeline", fmt::format("/ranks/{}", rank), rule, values, ""});
}

bool is_span(const Span& span) {
  return std::isfinite(span.begin) && std::isfinite(span.end) && 0 <= span.begin && span.begin <= span.end;
}

}  // namespace

double Timeline::end() const {
  double last = 0;
  for (const TimelineRank& rank : ranks)
    for (const Span& span : rank.spans) last = std::max(last, span.end);
  return last;
}

double compute_busy(const TimelineRank& rank, const RankOps& ops) {
  double busy = 0, covered = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].stream != Stream::compute) continue;
    busy += std::max(0.0, rank.spans[i].end - std::max(covered, rank.spans[i].begin));
    covered = std::max(covered, rank.spans[i].end);
  }
  return busy;
}

double bubble_fraction(double busy_s, double step_time_s) {
  return step_time_s > 0 ? std::max(0.0, 1 - busy_s / step_time_s) : 0;
}

double bubble_fraction(const TimelineRank& rank, const RankOps& ops, double step_time_s) {
  return bubble_fraction(compute_busy(rank, ops), step_time_s);
}

void require_fits(const Timeline& timeline, const Schedule& schedule) {
  for (std::size_t r = 0; r < timeline.ranks.size(); ++r) {
    const TimelineRank& rank = timeline.ranks[r];
    const auto pipeline_rank = static_cast<std::size_t>(rank.instance.pipeline_rank);
    if (pipeline_rank >= schedule.ranks.size())
      reject(r, "the pipeline rank must be in the schedule",
             fmt::format("pipeline rank {} of {}", rank.instance.pipeline_rank, schedule.ranks.size()));
    const std::size_t ops = schedule.ranks[pipeline_rank].size();
    if (rank.spans.size() != ops)
      reject(r, "there must be one span for each op",
             fmt::format("{} spans, {} ops", rank.spans.size(), ops));
    const auto bad = std::find_if_not(rank.spans.begin(), rank.spans.end(), is_span);
    if (bad != rank.spans.end())
      reject(r, "a span must be finite and must not end before it begins",
             fmt::format("op {}: {} to {} s", bad - rank.spans.begin(), bad->begin, bad->end));
  }
}

}  // namespace rehearse
