// Boost.Graph's longest path through the ops is the reference engine's step.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <limits>
#include <vector>

#include "run.h"
#include "run/reference.h"

namespace rehearse::properties {
namespace {

using Seconds = boost::property<boost::edge_weight_t, double>;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Seconds>;

// A task begins after tasks that precede one of its ops in the same queue, and after tasks that the op waits
// for. One additional vertex begins first. An edge's weight is the negative time of its source, so the
// shortest path is the longest.
Graph graph_of(const Run& run) {
  const Tasks& tasks = run.ready.tasks;
  Graph graph(tasks.size() + 1);
  const auto seconds = [&](TaskId task) { return run.loads.alone_s(task); };
  for (TaskId task = 0; task < tasks.size(); ++task) boost::add_edge(tasks.size(), task, 0.0, graph);
  for (int i = 0; i < static_cast<int>(tasks.instances.size()); ++i) {
    const auto rank = static_cast<std::size_t>(tasks.instances[static_cast<std::size_t>(i)].pipeline_rank);
    const RankOps& list = run.ready.schedule.ranks[rank];
    std::array<TaskId, kStreams> last;
    last.fill(static_cast<TaskId>(tasks.size()));
    for (std::size_t op = 0; op < list.size(); ++op) {
      const TaskId task = tasks.task(i, op);
      const bool one_queue = run.experiment.plan.one_queue;
      TaskId& before = last[one_queue ? 0 : static_cast<std::size_t>(list[op].stream)];
      if (before != tasks.size()) boost::add_edge(before, task, -seconds(before), graph);
      for (const std::int32_t wait : list.waits(list[op])) {
        const TaskId earlier = tasks.task(i, static_cast<std::size_t>(wait));
        boost::add_edge(earlier, task, -seconds(earlier), graph);
      }
      before = task;
    }
  }
  return graph;
}

RC_GTEST_PROP(LegalRun, TakesTheLongestPathThatBoostFinds, ()) {
  const auto run = legal_run();
  const Graph graph = graph_of(*run);
  std::vector<double> begins(boost::num_vertices(graph));
  boost::dag_shortest_paths(graph, boost::num_vertices(graph) - 1,
                            boost::distance_map(boost::make_iterator_property_map(
                                begins.begin(), boost::get(boost::vertex_index, graph))));
  double end = 0;
  for (TaskId task = 0; task < run->ready.tasks.size(); ++task)
    end = std::max(end, -begins[task] + run->loads.alone_s(task));
  RC_ASSERT(std::abs(end - run->reference.end()) <= 1e-9 * end);
}

}  // namespace
}  // namespace rehearse::properties
