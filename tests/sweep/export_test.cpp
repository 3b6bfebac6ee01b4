#include "sweep/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "scratch.h"
#include "small_grid.h"

namespace rehearse {
namespace {

class Export : public ::testing::Test {
 protected:
  Export() : grid_(small_grid()), store_(scratch_.file("a.db"), {}, grid_, false) {
    store_.put(1, {RowState::illegal, "too \"many\", really", nullptr});
    store_.put(
        0, {RowState::done,
            "",
            {{"step_time_s", 1.5}, {"time_s", {{"compute", 1.25}}}, {"mbs", {{"n", 7}}}, {"list", {1, 2}}}});
  }
  Scratch scratch_;
  Grid grid_;
  Store store_;
};

TEST_F(Export, JsonLinesGiveFieldsThenTheReport) {
  std::ostringstream out;
  write_jsonl(out, store_, grid_);
  EXPECT_EQ(out.str(), R"({"mbs":1,"schedule":"gpipe","state":"done","reason":"","step_time_s":1.5,)"
                       R"("time_s":{"compute":1.25},"report_mbs":{"n":7},"list":[1,2]})"
                       "\n"
                       R"({"mbs":1,"schedule":"1f1b","state":"illegal","reason":"too \"many\", really"})"
                       "\n");
}

TEST_F(Export, CsvJoinsNestedKeysAndQuotesWhatNeedsIt) {
  std::ostringstream out;
  write_csv(out, store_, grid_);
  EXPECT_EQ(out.str(),
            "mbs,schedule,state,reason,step_time_s,time_s.compute,report_mbs.n\r\n"
            "1,gpipe,done,,1.5,1.25,7\r\n"
            "1,1f1b,illegal,\"too \"\"many\"\", really\",,,\r\n");
}

}  // namespace
}  // namespace rehearse
