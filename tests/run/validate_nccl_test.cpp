#include "run/validate_nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "cost/nccl/read_model.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

std::vector<std::string> tables() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(SOURCE_DIR "/calibrate/data/nccl")) {
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string written(const std::string& name, const std::string& text) {
  return scratch().write(name, text);
}

TEST(ValidateNccl, PredictsEveryShippedTable) {
  const NcclValidation validation = validate_nccl(tables(), nccl::read_model(nccl::kDefaultModel));
  for (const NcclTable& table : validation.tables) EXPECT_EQ(table.skipped, "") << table.file;
  EXPECT_GT(validation.summary.tables, 110);
  EXPECT_GT(validation.summary.rows, 2500);
}

// Measurements on a system are used directly; several tables of one system use their median. Times that fall
// as messages grow do too: one row in ten is off by more than 5 % for that reason.
TEST(ValidateNccl, IsWithin1PercentWhereTheVerySystemWasMeasured) {
  const NcclSummary summary = validate_nccl(tables(), nccl::read_model(nccl::kDefaultModel)).summary;
  for (const auto& median : summary.median_abs) EXPECT_LT(median.value(), 0.01);
  EXPECT_LT(summary.p90_abs[3].value(), 0.08);
}

TEST(ValidateNccl, IsWithin9PercentByTheCorrectionsAlone) {
  nccl::Model model = nccl::read_model(nccl::kDefaultModel);
  model.measured.clear();
  const NcclSummary summary = validate_nccl(tables(), model).summary;
  const double most[] = {0.07, 0.13, 0.033, 0.09};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_LT(summary.median_abs[i].value(), most[i]) << kSizeClassNames[i];
}

TEST(ValidateNccl, KeepsIrregularTablesOutOfTheSummary) {
  const nccl::Model model = nccl::read_model(nccl::kDefaultModel);
  const std::string irregular = SOURCE_DIR "/calibrate/data/nccl/a100_oci_2x8_all_reduce_irregular.json";
  const NcclValidation validation = validate_nccl({irregular}, model);
  EXPECT_TRUE(validation.tables[0].irregular);
  EXPECT_GT(validation.tables[0].median_abs[3].value(), 0);
  EXPECT_EQ(validation.summary.tables, 0);
  EXPECT_FALSE(validation.summary.median_abs[3].has_value());
}

TEST(ValidateNccl, SkipsWhatItCannotPredictAndSaysWhy) {
  const nccl::Model model = nccl::read_model(nccl::kDefaultModel);
  const auto reason = [&](const std::string& text) {
    return validate_nccl({written("table.json", text)}, model).tables[0].skipped;
  };
  EXPECT_THAT(reason(R"({"files": []})"), HasSubstr("not an nccl-tests table"));
  EXPECT_THAT(reason(R"([1, 2])"), HasSubstr("not an nccl-tests table"));
  const std::string head = R"({"op": "all_reduce", "n_nodes": 1, "rows": [{"bytes": 8, "time_us": 9}], )";
  EXPECT_THAT(reason(head + R"("gpus_per_node": 8, "cluster": "atlantis"})"), HasSubstr("atlantis"));
  EXPECT_THAT(reason(head + R"("gpus_per_node": 16, "cluster": "dgx-h100"})"), HasSubstr("8 GPUs"));
  EXPECT_EQ(reason(head + R"("gpus_per_node": 8, "cluster": "dgx-h100"})"), "");
  EXPECT_THROW(validate_nccl({written("table.json", "{")}, model), InputError);
}

}  // namespace
}  // namespace rehearse
