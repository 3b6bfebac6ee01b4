// NVFP4 on B300 compared with Transformer Engine's own benchmark of a layer's linear operators (15,872
// tokens, hidden 4096, 16,384 wide; docs/examples/gemm_profiling). The profile took a bound and the casts'
// rates from it.
#include <gtest/gtest.h>

#include <array>

#include "cluster/cluster.h"
#include "cost/curves.h"
#include "cost/profile.h"
#include "plan/work.h"

namespace rehearse::fp4_rates {
namespace {

struct Shape {
  std::int64_t m, n, k;
};

constexpr std::int64_t kTokens = 15872, kHidden = 4096, kFfn = 16384;
constexpr std::array kForward = {Shape{kTokens, 3 * kHidden, kHidden}, Shape{kTokens, kHidden, kHidden},
                                 Shape{kTokens, kFfn, kHidden}, Shape{kTokens, kHidden, kFfn}};

// All twelve GEMMs: those above, and with n and k, then m and k in each other's place.
double layer_s(const Profile& profile, const Gpu& gpu, const std::string& precision) {
  double seconds = 0;
  const auto add = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
    Gemm gemm;
    gemm.m = m;
    gemm.n = n;
    gemm.k = k;
    seconds += gemm_time(profile, gpu, gemm, precision).seconds;
  };
  for (const Shape& shape : kForward) {
    add(shape.m, shape.n, shape.k);
    add(shape.m, shape.k, shape.n);
    add(shape.k, shape.n, shape.m);
  }
  return seconds;
}

// Measured for a tenth of a second, before power holds the clocks: 3.764 ms.
TEST(Fp4Rates, ALayersProductsTakeHalfOfMxfp8s) {
  const Profile profile = read_profile("b300-sxm");
  const Gpu gpu = read_cluster("dgx-b300").gpu;
  const double fp4 = layer_s(profile, gpu, "fp4");
  EXPECT_NEAR(layer_s(profile, gpu, "fp8") * profile.fp8_blocks / fp4, 7.161 / 3.764, 0.15);
  EXPECT_NEAR(fp4, 3.764e-3, 0.05 * 3.764e-3);
}

// Time of operators of the forward shapes beyond GEMMs of operands quantized before: 0.678 ms for a pass over
// both operands and a cast of both.
TEST(Fp4Rates, QuantizingALayersOperandsTakesWhatWasMeasured) {
  const Profile profile = read_profile("b300-sxm");
  const Gpu gpu = read_cluster("dgx-b300").gpu;
  double seconds = 0;
  for (const Shape& shape : kForward) {
    for (const std::int64_t rows : {shape.m, shape.n}) {
      const double elements = static_cast<double>(rows) * static_cast<double>(shape.k);
      for (const double bytes : {2.0, 2 + 2 * kFp4Bytes})
        seconds += pointwise_time(profile, gpu, Pointwise::quantize_fp4, bytes * elements).seconds;
    }
  }
  EXPECT_NEAR(seconds, 0.678e-3, 0.05 * 0.678e-3);
  const double bytes = 3e8;
  EXPECT_NEAR(pointwise_time(profile, gpu, Pointwise::quantize_fp4_at_random, bytes).seconds /
                  pointwise_time(profile, gpu, Pointwise::quantize_fp4, bytes).seconds,
              6.4 / 4.5, 1e-3);
}

}  // namespace
}  // namespace rehearse::fp4_rates
