// The built-in collectives model: made from the tables beside it, and its accuracy on unseen tables.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "calibrate/import/collectives.h"
#include "calibrate/import/hardware.h"
#include "calibrate/import/nccl_errors.h"
#include "calibrate/import/profile_json.h"
#include "cost/nccl/read_model.h"

namespace rehearse::nccl {
namespace {

using namespace std::string_literals;

const std::string kData = SOURCE_DIR "/calibrate/data";

TEST(NcclImport, MakesTheCommittedModelByteForByte) {
  std::stringstream committed;
  committed << std::ifstream(SOURCE_DIR "/calibrate/collectives/nccl.json", std::ios::binary).rdbuf();
  EXPECT_EQ(to_text(import_model(kData)), committed.str());
}

struct Fitted {
  Constants constants = read_model(kDefaultModel).constants;
  std::vector<Sample> samples = read_samples(kData + "/nccl", constants);

  double median_error(LeftOut left_out, double least_bytes) const {
    std::vector<double> sizes;
    for (const RowError& row : errors(constants, samples, left_out)) {
      if (row.bytes >= least_bytes) sizes.push_back(std::abs(row.error));
    }
    std::sort(sizes.begin(), sizes.end());
    return sizes[sizes.size() / 2];
  }
};

constexpr double kLarge = 256.0 * (1 << 20);

TEST(NcclFit, LeavesIrregularTablesOut) {
  for (const Sample& sample : Fitted().samples) EXPECT_FALSE(sample.table.irregular);
  EXPECT_GT(Fitted().samples.size(), 110U);
}

// Corrections alone, without the rows of the very system.
TEST(NcclFit, CorrectsToWithin9PercentAnd3From256MiB) {
  const Fitted fitted;
  EXPECT_LT(fitted.median_error(LeftOut::nothing, 0), 0.09);
  EXPECT_LT(fitted.median_error(LeftOut::nothing, kLarge), 0.03);
}

TEST(NcclFit, PredictsATableThatItHasNotSeenBetterThanNcclBelieves) {
  const Fitted fitted;
  const double unseen = fitted.median_error(LeftOut::table, 0);
  EXPECT_LT(unseen, 0.16);
  EXPECT_LT(fitted.median_error(LeftOut::table, kLarge), 0.05);
  EXPECT_GT(fitted.median_error(LeftOut::all, 0), 1.5 * unseen);
}

TEST(NcclFit, PredictsASystemThatItHasNotSeenBetterThanNcclBelieves) {
  const Fitted fitted;
  EXPECT_LT(fitted.median_error(LeftOut::hardware, 0), 0.21);
  EXPECT_LT(fitted.median_error(LeftOut::hardware, kLarge), 0.07);
}

TEST(NcclFit, OfOneHardwareMakesNoClass) {
  const Fitted fitted;
  std::vector<const Sample*> one;
  for (const Sample& sample : fitted.samples) {
    if (sample.hardware == "abci-v100") one.push_back(&sample);
  }
  const Model model = fit(fitted.constants, one);
  ASSERT_EQ(model.systems.size(), 1u);
  EXPECT_EQ(model.systems.front().name, "abci-v100");
  for (const Correction& correction : model.corrections) EXPECT_EQ(correction.system, 0u);
}

// Measurements on a degraded fabric change no class, but are kept for their own cluster.
TEST(NcclFit, ADegradedFabricTellsOfItselfAlone) {
  Fitted fitted;
  const auto all = [&] {
    std::vector<const Sample*> samples;
    for (const Sample& sample : fitted.samples) samples.push_back(&sample);
    return samples;
  };
  const auto between_nodes_of_abci = [](const Sample& sample) {
    return sample.hardware == "abci-a100" && sample.group.nodes > 1;
  };
  const auto slow = [&] {
    for (Sample& sample : fitted.samples)
      if (between_nodes_of_abci(sample))
        for (auto& [step, log_ratio] : sample.curve) log_ratio += 1;
    return fit(fitted.constants, all());
  };
  const Model before = fit(fitted.constants, all()), after = slow();
  ASSERT_EQ(before.corrections.size(), after.corrections.size());
  int changed = 0;
  for (std::size_t i = 0; i < before.corrections.size(); ++i) {
    const Correction &was = before.corrections[i], &is = after.corrections[i];
    const std::string name = is.system ? after.systems[*is.system].name : "";
    if (name == "abci-a100" && is.across)
      changed += was.log_ratio != is.log_ratio ? 1 : 0;
    else
      EXPECT_EQ(was.log_ratio, is.log_ratio) << name << is.link;
  }
  EXPECT_GT(changed, 0);
}

TEST(Topologies, OfOneNodeShareWhatWasMeasuredWithinIt) {
  const auto names = [](const char* cluster) {
    const Hardware hardware = hardware_of(cluster);
    return std::pair(hardware.whole, hardware.node);
  };
  EXPECT_EQ(names("azure-ndm-a100-v4"), std::pair("dgx-a100-80gb"s, "dgx-a100-80gb"s));
  EXPECT_EQ(names("selene"), std::pair("selene"s, "dgx-a100-80gb"s));                     // another fabric
  EXPECT_EQ(names("fms-h100"), std::pair("fms-h100"s, "dgx-h100"s));                      // other NICs
  EXPECT_EQ(names("aws-p4d"), std::pair("p4d.24xlarge"s, "p4d.24xlarge"s));               // another GPU
  EXPECT_EQ(names("jean-zay-v100-16gb"), std::pair("jean-zay-v100"s, "jean-zay-v100"s));  // less memory alone
  EXPECT_EQ(names("aws-p3dn"), std::pair("aws-p3dn"s, "p3.16xlarge"s));
  EXPECT_EQ(names("polaris"), std::pair("polaris"s, "polaris"s));  // four GPUs
}

}  // namespace
}  // namespace rehearse::nccl
