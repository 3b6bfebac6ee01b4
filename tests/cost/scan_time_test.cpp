// The scan of a state space: its reckoned times against those that others measured.
#include "cost/scan_time.h"

#include <gtest/gtest.h>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "cost/curves.h"
#include "cost/profile.h"

namespace rehearse {
namespace {

Scan scan_of(const Json& row) {
  return {row[1], row[2], row[3], row[4], row[5], row[6]};
}

// The timed kernels had no gate. A gate is read, and with it the scan's ungated output stays beside the gated
// one.
double without_gate(const Gpu& gpu, const Scan& scan) {
  const double rows = 2.0 * static_cast<double>(scan.tokens * scan.heads * scan.head_dim);
  return scan_seconds(gpu, scan, 2, 0) - 2 * rows / (0.54 * gpu.memory_bandwidth);
}

TEST(ScanTime, IsWithinATenthOfWhatWasTimedOnH100) {
  const Json table = read_json_file(SOURCE_DIR "/calibrate/data/misc/state_space.json");
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  int compared = 0;
  for (const Json& row : table["rows"]) {
    if (row[0] != gpu.name || row[1] < 4096) continue;  // shorter ones wait for the host
    EXPECT_NEAR(without_gate(gpu, scan_of(row)) * 1e6 / row[7].get<double>(), 1, 0.11) << row;
    ++compared;
  }
  EXPECT_EQ(compared, 7);
}

// Nobody named their GPU.
TEST(ScanTime, IsWithinAQuarterOfWhatSomebodyTimedOnWhatLooksLikeAnA100) {
  const Json table = read_json_file(SOURCE_DIR "/calibrate/data/misc/state_space.json");
  const Gpu gpu = read_cluster("dgx-a100-80gb").gpu;
  for (const Json& row : table["rows"]) {
    if (row[0] != "not stated" || row[1] <= 16384) continue;  // shorter ones wait for the host
    EXPECT_NEAR(without_gate(gpu, scan_of(row)) * 1e6 / row[7].get<double>(), 1, 0.25) << row;
  }
}

TEST(ScanTime, GrowsWithTokensAndIsThreeTimesAsLongBackward) {
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  Scan scan{8192, 64, 64, 8, 128, 128};
  const double once = scan_seconds(gpu, scan, 2, 0);
  scan.tokens *= 2;
  EXPECT_DOUBLE_EQ(scan_seconds(gpu, scan, 2, 0), 2 * once);
  const double forward = scan_seconds(gpu, scan, 2, 0);
  scan.backward = true;
  EXPECT_NEAR(scan_seconds(gpu, scan, 2, 0) / forward, 3.1, 0.3);
}

TEST(ScanTime, OfLinearAttentionIsOfTheKernelsOwnBytes) {
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  const Scan scan{8192, 48, 128, 48, 128, 64, false, true};
  const double once = scan_seconds(gpu, scan, 2, 1e9), twice = scan_seconds(gpu, scan, 2, 2e9);
  EXPECT_NEAR(twice - once, 1e9 / (0.54 * gpu.memory_bandwidth), 1e-9);
  Scan shared = scan;
  shared.of_linear_attention = false;
  EXPECT_EQ(scan_seconds(gpu, shared, 2, 1e9), scan_seconds(gpu, shared, 2, 2e9));
}

TEST(ScanTime, IsThatOfItsOwnCurveWhereOneWasTaken) {
  const Gpu gpu = read_cluster("dgx-h100").gpu;
  Profile profile = read_profile("h100-sxm");
  const Scan scan{8192, 64, 64, 8, 128, 128};
  const double reckoned = scan_time(profile, gpu, scan, {1e9, 2}).seconds;
  EXPECT_TRUE(scan_time(profile, gpu, scan, {1e9, 2}).extrapolated);
  profile.stream["scan"] = {{1e9, 1e12}};
  EXPECT_DOUBLE_EQ(scan_time(profile, gpu, scan, {1e9, 2}).seconds, 1e-3);
  EXPECT_NE(reckoned, 1e-3);
  EXPECT_FALSE(scan_time(profile, gpu, scan, {1e9, 2}).extrapolated);
}

}  // namespace
}  // namespace rehearse
