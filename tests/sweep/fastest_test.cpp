// Which row do the table, the page, the pictures and the exported rows call the fastest?
#include "sweep/fastest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scratch.h"
#include "small_grid.h"
#include "sweep/export.h"
#include "sweep/store.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;

Json speed_of(double tokens_per_s_per_gpu, double step_time_s) {
  return {{"step_time_s", step_time_s}, {"tokens_per_s_per_gpu", tokens_per_s_per_gpu}};
}

class Fastest : public ::testing::Test {
 protected:
  Fastest() : grid_(small_grid()), store_(scratch_.file("a.db"), {}, grid_, false) {}
  Scratch scratch_;
  Grid grid_;
  Store store_;
};

TEST_F(Fastest, IsTheOneOfMostTokensNotOfTheShortestStep) {
  store_.put(0, {RowState::done, "", speed_of(485, 2.1)});
  store_.put(1, {RowState::done, "", speed_of(916, 17.9)});
  EXPECT_EQ(store_.fastest(), 1);
}

TEST_F(Fastest, IsNoneThatDoesNotFit) {
  store_.put(0, {RowState::does_not_fit, "needs more", speed_of(2000, 1)});
  EXPECT_FALSE(store_.fastest());
  store_.put(1, {RowState::failed, "ended", speed_of(1500, 1)});
  store_.put(2, {RowState::illegal, "heads", nullptr});
  EXPECT_FALSE(store_.fastest());
  store_.put(3, {RowState::done, "", speed_of(10, 100)});
  EXPECT_EQ(store_.fastest(), 3);
}

TEST_F(Fastest, OfEqualRowsIsTheFirst) {
  store_.put(2, {RowState::done, "", speed_of(10, 1)});
  store_.put(4, {RowState::done, "", speed_of(10, 1)});
  EXPECT_EQ(store_.fastest(), 2);
}

TEST_F(Fastest, IsMarkedInWhatIsExported) {
  store_.put(0, {RowState::done, "", speed_of(485, 2.1)});
  store_.put(1, {RowState::done, "", speed_of(916, 17.9)});
  store_.put(2, {RowState::does_not_fit, "needs more", speed_of(2000, 1)});
  std::ostringstream csv, jsonl;
  write_csv(csv, store_, grid_);
  write_jsonl(jsonl, store_, grid_);
  EXPECT_EQ(csv.str(),
            "mbs,schedule,state,reason,fastest,step_time_s,tokens_per_s_per_gpu\r\n"
            "1,gpipe,done,,false,2.1,485.0\r\n"
            "1,1f1b,done,,true,17.9,916.0\r\n"
            "2,gpipe,does not fit,needs more,false,1.0,2000.0\r\n");
  EXPECT_THAT(jsonl.str(), HasSubstr(R"("reason":"","fastest":true,"step_time_s":17.9)"));
}

TEST(IsFaster, PutsWhatFitsFirstThenTokensThenTheStep) {
  const RowSpeed fits{RowState::done, 10, 5}, faster{RowState::done, 20, 50}, shorter{RowState::done, 10, 4};
  const RowSpeed too_large{RowState::does_not_fit, 100, 1}, failed{RowState::failed, 100, 1};
  EXPECT_TRUE(is_faster(faster, fits));
  EXPECT_TRUE(is_faster(shorter, fits));
  EXPECT_TRUE(is_faster(fits, too_large));
  EXPECT_TRUE(is_faster(too_large, failed));
  EXPECT_FALSE(is_faster(fits, fits));
}

}  // namespace
}  // namespace rehearse
