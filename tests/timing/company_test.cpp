// The slowdown of kernels by concurrent ranks is measured, and saved.
#include "calibrate/timing/concurrent_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/timing/calibration.h"
#include "calibrate/timing/profile_file.h"
#include "cost/read_profile.h"
#include "timing/small_model.h"

namespace rehearse {
namespace {

using testing::Key;
using testing::UnorderedElementsAre;

Model gpt_of_four_layers() {
  Model model = small_model(4);
  model.gated_mlp = false;
  return model;
}

Plan two_stages() {
  Plan plan;
  plan.pp = 2;
  plan.precision = Precision::fp32;
  plan.seq = 32;
  plan.global_batch = 8;
  return plan;
}

TEST(ConcurrentLoad, JobsKnowHowOftenAMicrobatchMeetsThem) {
  const Jobs jobs = jobs_of(gpt_of_four_layers(), two_stages());
  const auto uses = [&](double columns) {
    double all = 0;
    for (const KernelJob& job : jobs.kernels)
      if (job.key.name == "fp32" && job.key.size[1] == columns) all += job.uses;
    return all;
  };
  EXPECT_EQ(uses(80), 4);   // of every layer
  EXPECT_EQ(uses(128), 1);  // of the head
}

TEST(ConcurrentLoad, SlowsWhatIsTimedBesideIt) {
  Ranks ranks;
  for (int i = 0; i < 2; ++i) ranks.devices.push_back(kernels::open_cpu());
  ranks.worlds = kernels::open_memory_worlds(2);
  CalibrationRequest request;
  request.cluster = read_cluster("cpu-node");
  request.jobs = jobs_of(gpt_of_four_layers(), two_stages());
  request.ranks = &ranks;
  request.cache = Cache::warm;
  request.budget_s = 1e-4;
  request.stopped = [] { return false; };
  Profile profile;
  profile.name = "test";
  profile.gpu.name = "CPU core";
  profile.how = How::measured;
  profile.sources = {{"test", "", ""}};
  const Calibration done = calibrate(ranks.device(0), request, profile);
  ASSERT_TRUE(done.profile.measurement->with_concurrent_ranks);
  const Slowdowns& slowdowns = *done.profile.measurement->with_concurrent_ranks;
  EXPECT_EQ(slowdowns.others, 1);
  EXPECT_THAT(slowdowns.gemm,
              UnorderedElementsAre(Key("fp32"), Key("fp32/input_gradient"), Key("fp32/weight_gradient")));
  EXPECT_THAT(slowdowns.attention, UnorderedElementsAre(Key("forward"), Key("backward")));
  EXPECT_THAT(slowdowns.step, testing::Contains(Key("adam")));
  for (const auto& [name, slowdown] : slowdowns.gemm) EXPECT_GE(slowdown, 1) << name;
  const Json json = profile_json(done.profile, request.cluster.gpu);
  EXPECT_EQ(profile_json(parse_profile(JsonReader(json, "profile.json")), request.cluster.gpu), json);
}

}  // namespace
}  // namespace rehearse
