#include "sweep/shard.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>

#include "base/error.h"

namespace rehearse {
namespace {

using Variables = std::map<std::string, std::string>;

Environment environment_of(const Variables& variables) {
  return [variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

void expect_shard(const Shard& shard, int index, int count) {
  EXPECT_EQ(shard.index, index);
  EXPECT_EQ(shard.count, count);
}

TEST(Shards, TogetherTakeEveryPointOnce) {
  rc::check([] {
    const int count = *rc::gen::inRange(1, 20);
    for (Point point = 0; point < 50; ++point) {
      int takers = 0;
      for (int index = 1; index <= count; ++index) takers += Shard{index, count}.has(point);
      RC_ASSERT(takers == 1);
    }
  });
}

TEST(Shards, AreReadAsIOfN) {
  const Environment none = environment_of({});
  expect_shard(parse_shard("3/8", none), 3, 8);
  for (const char* text : {"", "1", "/", "1/", "/2", "0/4", "5/4", "-1/4", "a/b", "1/2/3", "1 /2", "auto"})
    EXPECT_THROW(parse_shard(text, none), InputError) << text;
}

TEST(Shards, FollowTheLauncher) {
  expect_shard(parse_shard("auto", environment_of({{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}})), 1,
               4);
  expect_shard(parse_shard("auto", environment_of({{"OMPI_COMM_WORLD_RANK", "6"},
                                                   {"OMPI_COMM_WORLD_SIZE", "7"},
                                                   {"SLURM_PROCID", "0"},
                                                   {"SLURM_STEP_NUM_TASKS", "1"}})),
               7, 7);
  expect_shard(parse_shard("auto", environment_of({{"RANK", "1"}, {"WORLD_SIZE", "2"}})), 2, 2);
}

TEST(Shards, ABatchScriptIsOneProcess) {
  const Variables script = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}};
  EXPECT_THROW(parse_shard("auto", environment_of(script)), InputError);
}

TEST(Shards, FollowSlurmArraysThatBeginAndStepAnyhow) {
  const Variables array = {{"SLURM_ARRAY_TASK_ID", "14"},
                           {"SLURM_ARRAY_TASK_MIN", "10"},
                           {"SLURM_ARRAY_TASK_STEP", "2"},
                           {"SLURM_ARRAY_TASK_COUNT", "5"}};
  expect_shard(parse_shard("auto", environment_of(array)), 3, 5);
  Variables with_ranks = array;
  with_ranks["SLURM_PROCID"] = "1";
  with_ranks["SLURM_STEP_NUM_TASKS"] = "2";
  expect_shard(parse_shard("auto", environment_of(with_ranks)), 6, 10);
  Variables outside = array;
  outside["SLURM_ARRAY_TASK_ID"] = "30";
  EXPECT_THROW(parse_shard("auto", environment_of(outside)), InputError);
}

}  // namespace
}  // namespace rehearse
