// Small schedules in full, so that a change of order is visible in a review. The interleaved order was
// compared with the schedule table and warm-up of Megatron-LM 00611e6 (get_schedule_table,
// get_pp_rank_microbatches). The other compute orders were written by the rule of their papers. The two with
// messages are snapshots.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "schedule/orders.h"
#include "schedule/passes.h"
#include "schedule/text.h"

namespace rehearse {
namespace {

std::string golden(const std::string& name) {
  std::ifstream file(std::string(SOURCE_DIR) + "/tests/golden/" + name);
  EXPECT_TRUE(file) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Golden, GpipeOf4RanksAnd8Microbatches) {
  EXPECT_EQ(write_csv(orders::gpipe({4, 8})), golden("gpipe_p4_m8.csv"));
}

TEST(Golden, OneFOneBOf4RanksAnd8Microbatches) {
  EXPECT_EQ(write_csv(orders::one_f_one_b({4, 8})), golden("1f1b_p4_m8.csv"));
}

TEST(Golden, InterleavedOf4RanksWith2ChunksAnd8MicrobatchesIsMegatronLMs) {
  EXPECT_EQ(write_csv(orders::interleaved({4, 8, 2})), golden("interleaved-1f1b_p4_v2_m8.csv"));
}

TEST(Golden, OneFOneBOf4RanksWithItsTransfers) {
  EXPECT_EQ(write_csv(add_transfers(orders::one_f_one_b({4, 8}), true)), golden("1f1b_p4_m8_transfers.csv"));
}

TEST(Golden, CompleteScheduleOf2Ranks) {
  GradientSync sync;
  sync.tied = true;
  sync.replicas = 2;
  sync.buckets = {2, 1};
  const Schedule schedule = add_gradient_sync(add_transfers(orders::one_f_one_b({2, 3}), false), sync);
  EXPECT_EQ(write_text(schedule), golden("1f1b_p2_m3_complete.txt"));
}

}  // namespace
}  // namespace rehearse
