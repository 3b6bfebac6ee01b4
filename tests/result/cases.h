// Small networks, plans and timelines that the tests of results share.
#pragma once

#include <functional>
#include <vector>

#include "plan/work.h"
#include "result/report.h"
#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/tasks.h"

namespace rehearse::test {

Model small_model(int layers = 8);

Plan small_plan(int pp, int vpp, int microbatches, int dp = 1);

// Seconds of each op; a message takes the seconds of the sender's op.
using Seconds = std::function<double(const Op&)>;

// Longest path through the tasks: every op as early as its waits allow.
Timeline walk(const Schedule& schedule, const Plan& plan, const Seconds& seconds,
              const TaskOptions& options = {});

// F `f`, B `b`, messages, reductions and STEP of the given seconds; parts of an op share its time.
struct Durations {
  double f = 1, b = 2, message = 0, reduction = 0, step = 0;
  double operator()(const Op& op) const {
    if (op.kind == OpKind::forward) return f / op.parts;
    if (op.kind == OpKind::backward) return b / op.parts;
    if (op.kind == OpKind::step) return step;
    return op.stream == Stream::gradient ? reduction : message;
  }
};

Schedule full_schedule(const Plan& plan, int buckets = 2, bool tied = false);

RunFacts small_facts(const Plan& plan);

// A compute op is three quarters compute, one quarter exposed tp; STEP is optimizer.
OpTimes small_times(const Plan& plan);

// Everything of one run.
struct Case {
  Model model;
  Plan plan;
  Work work;
  Schedule schedule;
  Timeline timeline;
  Report report;
};

Case make_case(const Plan& plan, const Durations& durations, bool tied = false,
               const Model& model = small_model(), const TaskOptions& options = {});

}  // namespace rehearse::test
