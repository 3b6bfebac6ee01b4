#include "execute/assemble.h"

#include <algorithm>
#include <limits>

namespace rehearse {

Timeline assemble(const Tasks& tasks, const Schedule& schedule, std::vector<std::vector<Span>> spans) {
  Timeline timeline;
  for (const Instance& instance : tasks.instances)
    timeline.ranks.push_back({instance, std::move(spans[static_cast<std::size_t>(instance.rank)])});
  const auto for_each_op = [&](const auto& visit) {
    for (std::size_t i = 0; i < timeline.ranks.size(); ++i) {
      TimelineRank& rank = timeline.ranks[i];
      const RankOps& ops = schedule.ranks[static_cast<std::size_t>(rank.instance.pipeline_rank)];
      for (std::size_t op = 0; op < rank.spans.size(); ++op)
        visit(ops[op], tasks.task(static_cast<int>(i), op), rank.spans[op]);
    }
  };
  std::vector<double> meets(tasks.size(), -std::numeric_limits<double>::infinity());
  for_each_op([&](const Op& /*op*/, TaskId task, const Span& span) {
    meets[task] = std::max(meets[task], span.begin);
  });
  double first = std::numeric_limits<double>::infinity();
  for_each_op([&](const Op& op, TaskId task, Span& span) {
    if (op.stream != Stream::compute) span.begin = std::min(meets[task], span.end);
    first = std::min(first, span.begin);
  });
  for_each_op([&](const Op& /*op*/, TaskId /*task*/, Span& span) {
    span = {span.begin - first, span.end - first};
  });
  return timeline;
}

}  // namespace rehearse
