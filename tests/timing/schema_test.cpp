// Profiles are as docs/profile.schema.json says: those that ship, and one with all that can be measured.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibrate/timing/fit_profile.h"
#include "calibrate/timing/profile_file.h"
#include "cost/read_profile.h"
#include "json_schema.h"

namespace rehearse {
namespace {

std::string faults_of(const Json& profile) {
  return JsonSchema("profile.schema.json").faults_of(profile);
}

class Shipped : public testing::TestWithParam<std::string> {};

TEST_P(Shipped, ProfileIsAsTheSchemaSays) {
  EXPECT_EQ(faults_of(read_json_file(SOURCE_DIR "/calibrate/profiles/" + GetParam() + ".json")), "");
}

INSTANTIATE_TEST_SUITE_P(Profiles, Shipped, testing::ValuesIn(profile_names()), [](const auto& profile) {
  std::string name = profile.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

Json measured_profile() {
  const Cluster cluster = read_cluster("dgx-h100");
  Profile profile;
  profile.name = "test";
  profile.gpu = cluster.gpu;
  profile.how = How::measured;
  profile.sources = {{"test", "", ""}};
  profile.gemm["bf16"] = {{64, 64, 64, 1e-6, 2, 0.01}};
  profile.attention = {{64, 1024, true, false, 1e14, 0.01}};
  profile.stream["norm"] = {{1e6, 1e12, 0.01}};
  profile.measurement =
      Measurement{"H100",
                  "2026-11-22",
                  {"CUDA"},
                  132,
                  "cold",
                  1e9,
                  1e9,
                  {"a note"},
                  {{"all_reduce", 8, 1e6, 1e-4, 0.1}, {"all_reduce", 16, 1e6, 2e-4, 0.1, 2}},
                  {{{"all_reduce", 8, 1e6, 3e-4, 0.1}, 64, 64, 64, 2e-4}},
                  {{true, 1e6, 1e-4, 0.1}, {false, 1e6, 1e-4, 0.1}},
                  TogetherSample{8192, 8192, 8192, {1e-3, 1.01e-3}},
                  Slowdowns{3, {{"bf16", 1.1}}, {{"forward", 1.2}}, {{"add", 1.5}}, {{"adam", 2}}}};
  std::vector<std::string> notes;
  fit_measured(profile, cluster, true, notes);
  return profile_json(profile, cluster.gpu);
}

TEST(Schema, AllowsAllThatCanBeMeasured) {
  EXPECT_EQ(faults_of(measured_profile()), "");
}

TEST(Schema, ForbidsWhatIsNoProfile) {
  const Json good = measured_profile();
  const auto expect_fault = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    EXPECT_NE(faults_of(bad), "") << pointer;
    EXPECT_THROW(parse_profile(JsonReader(bad, "profile.json")), InputError) << pointer;
  };
  expect_fault("/schema", "rehearse.profile/2");
  expect_fault("/unheard_of", 1);
  expect_fault("/measurement/beside/0/k", 0);
  expect_fault("/measurement/messages/0/nodes", 0);
  expect_fault("/measurement/messages/0/op", "all_redouce");
  expect_fault("/measurement/host_copies/0/bytes", -1);
  expect_fault("/measurement/host_copies/0/unheard_of", 1);
  expect_fault("/links/0/efficiency", 1.5);
  expect_fault("/gemm/bf16/rows", Json::array());
}

}  // namespace
}  // namespace rehearse
