#include "base/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> kClusters = {"aws-p5",   "dgx-1-v100", "dgx-2", "dgx-h100",
                                            "dgx-h200", "oci-h100",   "selene"};

TEST(Names, LikeAnotherAreBestFirst) {
  EXPECT_THAT(similar_names("dgx-h10", kClusters), ElementsAre("dgx-h100", "dgx-h200"));
  EXPECT_THAT(similar_names("DGX-H200", kClusters, 1), ElementsAre("dgx-h200"));
  EXPECT_THAT(similar_names("dgx", kClusters, 2), ElementsAre("dgx-2", "dgx-h100"));
  EXPECT_THAT(similar_names("h100", kClusters), ElementsAre("dgx-h100", "oci-h100"));
  EXPECT_THAT(similar_names("frontier", kClusters), IsEmpty());
  EXPECT_THAT(similar_names("", kClusters), IsEmpty());
}

TEST(Names, OfALongListAreCounted) {
  EXPECT_EQ(some_names({"b", "a"}, "x"), "b, a");
  std::vector<std::string> many;
  for (char letter = 'a'; letter <= 'z'; ++letter) many.push_back(std::string(4, letter));
  EXPECT_EQ(some_names(many, "yyy"),
            "yyyy, aaaa, bbbb, cccc, dddd, eeee, ffff, gggg, hhhh, iiii, jjjj, kkkk and 14 more");
}

}  // namespace
}  // namespace rehearse
