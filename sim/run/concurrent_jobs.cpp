#include "run/concurrent_jobs.h"

#include <fmt/core.h>

#include "base/error.h"
#include "cluster/likeness.h"
#include "run/simulate.h"
#include "run/size.h"

namespace rehearse {

namespace {

std::int64_t nodes_of(const Experiment& experiment) {
  const int gpus = experiment.cluster.node.gpus;
  return (std::int64_t{experiment.plan.gpus()} + gpus - 1) / gpus;
}

void require(bool holds, const char* rule, const std::string& values, const std::string& nearest) {
  if (!holds) throw InputError({"", "--beside", rule, values, nearest});
}

void require_neighbours(const Experiment& own, const Experiment& other) {
  const Likeness alike = likeness(own.cluster, other.cluster, Reach::cluster);
  require(alike.same() && own.cluster.max_nodes == other.cluster.max_nodes, "both jobs run on one cluster",
          fmt::format("{} and {}{}", own.cluster.name, other.cluster.name,
                      alike.same() ? "" : fmt::format(", whose {} differ", differing_parts(alike))),
          own.cluster.name);
  const std::int64_t nodes = nodes_of(own) + nodes_of(other), most = own.cluster.max_nodes;
  require(most == 0 || nodes <= most, "the cluster has room for both jobs",
          fmt::format("{} + {} nodes of {}", nodes_of(own), nodes_of(other), most), "");
  for (const Experiment* job : {&own, &other}) {
    require(job->engine == Engine::simgrid, "only SimGrid shares links", to_string(job->engine), "simgrid");
    require(!job->conditions.has_jitter() && job->conditions.iterations == 1,
            "a concurrent job needs one iteration without jitter",
            fmt::format("{} iterations", job->conditions.iterations), "1, without jitter");
    require(job->stage_nodes.empty(), "both jobs run on one kind of node", "stage nodes", "none");
  }
}

}  // namespace

ConcurrentRun run_concurrently(Experiment own, Experiment other) {
  require_neighbours(own, other);
  own.fold = other.fold = Fold::none;
  own.conditions.nodes_after = nodes_of(other);
  other.conditions = own.conditions;
  other.conditions.nodes_after = 0;
  other.conditions.nodes_before = nodes_of(own);
  std::erase_if(other.conditions.slow, [](const Slow& part) { return part.part == Slow::Part::rank; });
  for (const Experiment* job : {&own, &other})
    require_affordable(*job, "the messages of two jobs meet anew in each round");
  ConcurrentRun both;
  both.own.preparation = prepare(own);
  Preparation beside = prepare(other);
  Preparation& ready = both.own.preparation;
  join_links(ready.loads, beside.loads);
  Neighbours run = simulate_neighbours({ready.schedule, ready.tasks, ready.loads},
                                       {beside.schedule, beside.tasks, beside.loads});
  both.own.timeline = std::move(run.own);
  both.own.step_times_s = {both.own.timeline.end()};
  both.own.report = report_of(own, ready, both.own.timeline);
  both.other_step_times_s = std::move(run.other_step_times_s);
  return both;
}

}  // namespace rehearse
