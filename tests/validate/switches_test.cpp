// Which switches of a run its source states.
#include "validate/switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Json kScenario = Json::parse(
    R"({"schema": "rehearse.scenario/1", "_why": "", "model": {"name": "m", "hidden_dropout": 0.1},
  "cluster": "dgx-h100", "plan": {"tp": 2, "clip_grad": 1}, "norm_kernel": "persistent"})");

std::string complaint(const Json& stated, const Json& why) {
  try {
    require_sources(kScenario, stated, why);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Switches, AreKeysOfPlanModelAndScenario) {
  std::vector<std::string> pointers;
  for (const Switch& each : switches_of(kScenario)) pointers.push_back(each.pointer());
  EXPECT_THAT(pointers, ElementsAre("/model/name", "/model/hidden_dropout", "/cluster", "/plan/tp",
                                    "/plan/clip_grad", "/norm_kernel"));
}

TEST(Switches, AreFoundByPointer) {
  EXPECT_EQ(switch_at("/plan/tp")->key, "tp");
  EXPECT_EQ(switch_at("/model/hidden_size")->part, "model");
  for (const char* other : {"", "/", "/plan", "/plan/", "/cluster", "plan/tp", "/plans/tp"})
    EXPECT_FALSE(switch_at(other)) << other;
}

const Json kStated = {"/model", "/cluster", "/plan/tp"};
const Json kWhy = {
    {"/plan/clip_grad", "a script"}, {"/model/hidden_dropout", "a paper"}, {"/norm_kernel", "a script"}};

TEST(Switches, AreStatedAloneOrAsAWholeUnlessAReasonIsGiven) {
  EXPECT_EQ(complaint(kStated, kWhy), "");
  EXPECT_EQ(
      stated_part(kScenario, kStated, kWhy),
      Json::parse(
          R"({"schema": "rehearse.scenario/1", "_why": "", "model": {"name": "m"}, "cluster": "dgx-h100",
                            "plan": {"tp": 2}})"));
}

TEST(Switches, AreAllStatedWhereNothingIsSaid) {
  EXPECT_EQ(complaint(Json(), Json::object()), "");
  EXPECT_EQ(stated_part(kScenario, Json(), Json::object()), kScenario);
  EXPECT_FALSE(stated_part(kScenario, Json(), kWhy).contains("norm_kernel"));
}

TEST(Switches, NeedASource) {
  Json why = kWhy;
  why.erase("/plan/clip_grad");
  EXPECT_THAT(complaint(kStated, why), HasSubstr("no source for /plan/clip_grad"));
}

TEST(Switches, AreNamedAsTheScenarioNamesThem) {
  EXPECT_THAT(complaint({"/model", "/cluster", "/plan/pt"}, kWhy), HasSubstr("/plan/tp"));
  Json why = kWhy;
  why["/plan/clip_grads"] = "";
  EXPECT_THAT(complaint(kStated, why), HasSubstr("/plan/clip_grad"));
}

}  // namespace
}  // namespace rehearse
