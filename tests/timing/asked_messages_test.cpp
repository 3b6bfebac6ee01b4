// Calibration times the messages that a simulated step sends.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "calibrate/timing/jobs.h"
#include "cost/collectives.h"
#include "memory/lifetimes.h"
#include "plan/frameworks/traits.h"
#include "run/iteration.h"
#include "schedule/op_messages.h"
#include "timing/small_model.h"

namespace rehearse {
namespace {

using Sizes = std::map<std::pair<CollectiveOp, int>, std::set<double>>;  // by op and ranks of the group

// Those that a step sends, and three small ones of each kind.
Sizes asked(const Experiment& experiment) {
  Sizes sizes;
  for (const MessageJob& job : jobs_of(experiment.model, experiment.plan).messages)
    sizes[{job.op, job.members}].insert(job.bytes);
  for (auto& [kind, bytes] : sizes)
    for (const double small : {1024.0, 65536.0, 1048576.0}) EXPECT_EQ(bytes.erase(small), 1U);
  return sizes;
}

class Issued {
 public:
  explicit Issued(const Experiment& experiment) : plan_(experiment.plan) {
    const Preparation ready = prepare(experiment);
    const MessageSizes bytes =
        message_sizes(ready.work, experiment.model, plan_, offloaded_bytes(ready.work));
    for (const RankOps& ops : ready.schedule.ranks) {
      for (std::size_t i = 0; i < ops.size(); ++i) {
        for (const Collective& message : messages_of(bytes, plan_, ops, i)) add(message);
        if (is_compute(ops[i].kind)) add_passes(ready.work, ops[i].stage);
      }
    }
    Block scratch;
    add(optimizer_kernels(1, plan_, scratch));
  }

  Sizes sizes;

 private:
  void add_passes(const Work& work, int stage) {
    if (work.receives_activation(stage) || work.receives_gradient(stage)) add(work.arrival.forward);
    for (const Repeated& part : work.parts[static_cast<std::size_t>(stage)]) {
      const Block& block = work.blocks[static_cast<std::size_t>(part.block)];
      for (const auto* list :
           {&block.forward, &block.recompute, &block.backward_input, &block.backward_weight})
        add(*list);
    }
  }

  void add(const std::vector<Kernel>& kernels) {
    for (const Kernel& kernel : kernels)
      if (const auto* message = std::get_if<Collective>(&kernel.what)) add(*message);
  }

  void add(const Collective& message) {
    const int ranks = message.op == CollectiveOp::send_receive ? 2 : group_size(message.group, plan_);
    if (message.group != CommGroup::host && ranks > 1 && message.calls > 0)
      sizes[{message.op, ranks}].insert(message.bytes);
  }

  const Plan& plan_;
};

Experiment small_run(Framework framework, int zero) {
  Experiment experiment;
  experiment.model = small_model(8);
  experiment.cluster = read_cluster("dgx-h100");
  experiment.profile = read_profile(experiment.cluster.profile);
  experiment.engine = Engine::reference;
  Plan& plan = experiment.plan;
  plan.framework = framework;
  plan.zero = zero;
  plan.seq = 32;
  plan.dp = 4;
  apply_framework(plan);
  plan.bucket_bytes = 60e3;  // several in a stage
  plan.clip_grad = 1;
  plan.global_batch = 32;
  return experiment;
}

std::string described(const Plan& plan) {
  return fmt::format("{}, zero {}, tp {}, pp {}, ep {}, zero shard {}", to_string(plan.framework), plan.zero,
                     plan.tp, plan.pp, plan.ep, plan.zero_shard);
}

// Compares for every framework and ZeRO stage, after `change`. Returns the number of legal plans.
template <typename Change>
int expect_asked_as_issued(const Change& change) {
  int compared = 0;
  for (const Framework framework : kFrameworks) {
    for (int zero = 0; zero <= 3; ++zero) {
      Experiment experiment = small_run(framework, zero);
      change(experiment);
      const Plan& plan = experiment.plan;
      if (!broken_rules(plan, experiment.model, plan.gpus()).empty()) continue;
      EXPECT_EQ(asked(experiment), Issued(experiment).sizes) << described(plan);
      ++compared;
    }
  }
  return compared;
}

TEST(Asked, AreTheMessagesThatReplicasSend) {
  EXPECT_GE(expect_asked_as_issued([](Experiment&) {}), 30);
}

TEST(Asked, AreTheMessagesOfGroupsThatShardAmongThem) {
  EXPECT_GE(expect_asked_as_issued([](Experiment& experiment) { experiment.plan.zero_shard = 2; }), 15);
}

TEST(Asked, AreTheMessagesOfPipelinesThatShareTheEmbedding) {
  const auto change = [](Experiment& experiment) {
    experiment.model.tied_embeddings = true;
    experiment.plan.tp = experiment.plan.pp = 2;
    experiment.plan.scatter_gather = !experiment.plan.sequence_parallel;
  };
  EXPECT_GE(expect_asked_as_issued(change), 12);
}

TEST(Asked, AreTheMessagesOfExperts) {
  const auto change = [](Experiment& experiment) {
    experiment.model.experts = Experts{8, 2, 32, 48, 1, 1, true};
    experiment.plan.ep = 2;
  };
  EXPECT_GE(expect_asked_as_issued(change), 8);
}

// The report counts calls and bytes of the simulation: the mean size of a call equals that of the requested
// messages.
TEST(Asked, AreAsLargeAsTheReportSays) {
  for (const Framework framework : kFrameworks) {
    for (int zero = 0; zero <= 3; ++zero) {
      const Experiment experiment = small_run(framework, zero);
      if (!broken_rules(experiment.plan, experiment.model, experiment.plan.gpus()).empty()) continue;
      Sizes sizes = asked(experiment);
      for (const CommunicationLine& line : run_iteration(experiment).report.communication) {
        const std::set<double>& calls = sizes[{message_ops().at(line.op), line.group_size}];
        ASSERT_FALSE(calls.empty()) << described(experiment.plan) << ": " << line.op;
        const double mean = line.bytes_per_rank / static_cast<double>(line.calls);
        EXPECT_GE(mean, 0.999 * *calls.begin()) << described(experiment.plan) << ": " << line.op;
        EXPECT_LE(mean, 1.001 * *calls.rbegin()) << described(experiment.plan) << ": " << line.op;
      }
    }
  }
}

}  // namespace
}  // namespace rehearse
