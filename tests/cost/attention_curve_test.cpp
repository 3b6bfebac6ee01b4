#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.h"
#include "cost/curves.h"
#include "machines.h"

namespace rehearse {
namespace {

const Gpu kGpu = test::dgx_a100().gpu;

Profile two_lengths() {
  Profile profile;
  profile.attention = {
      {128, 1024, true, false, 100e12}, {128, 4096, true, false, 200e12}, {128, 1024, true, true, 80e12}};
  return profile;
}

double full_forward_flops(const Attention& a) {
  return 4.0 * static_cast<double>(a.batch * a.heads * a.query * a.keys * a.head_dim);
}

TEST(AttentionCurve, CountsHalfTheForwardSquareWhenCausal) {
  const Attention attention = {2, 16, 16, 128, 1024, 1024, true, false};
  EXPECT_DOUBLE_EQ(attention_time(two_lengths(), kGpu, attention).seconds,
                   full_forward_flops(attention) / 2 / 100e12);
}

TEST(AttentionCurve, CountsFiveProductsBackwardAgainstTwoForward) {
  const Attention attention = {2, 16, 16, 128, 1024, 1024, true, true};
  EXPECT_DOUBLE_EQ(attention_time(two_lengths(), kGpu, attention).seconds,
                   2.5 * full_forward_flops(attention) / 2 / 80e12);
}

TEST(AttentionCurve, InterpolatesTheRateOnLogarithmicAxes) {
  const Attention attention = {2, 16, 16, 128, 2048, 2048, true, false};
  EXPECT_NEAR(full_forward_flops(attention) / 2 / attention_time(two_lengths(), kGpu, attention).seconds,
              std::sqrt(100e12 * 200e12), 1e3);
}

TEST(AttentionCurve, MarksLengthsAndHeadSizesBeyondTheSamples) {
  Attention attention = {1, 8, 8, 128, 8192, 8192, true, false};
  EXPECT_FALSE(attention_time(two_lengths(), kGpu, attention).extrapolated);
  attention.keys = 8193;
  EXPECT_TRUE(attention_time(two_lengths(), kGpu, attention).extrapolated);
  attention.keys = 2048;
  attention.head_dim = 32;
  EXPECT_TRUE(attention_time(two_lengths(), kGpu, attention).extrapolated);
}

// A block of 128 queries meets their window and a tile beside it.
TEST(AttentionCurve, CountsWholeTilesOfAWindow) {
  Attention narrow = {2, 16, 16, 128, 4096, 4096, true, false};
  Attention wide = narrow;
  narrow.window = 1024 - 128;
  wide.window = 1024;
  EXPECT_EQ(looped_keys(narrow), 1024);
  EXPECT_DOUBLE_EQ(attention_time(two_lengths(), kGpu, narrow).seconds, flops(wide) / 2 / 100e12);
  narrow.window = 4096;  // no window: as many keys as there are
  const double whole = attention_time(two_lengths(), kGpu, narrow).seconds;
  narrow.window = 0;
  EXPECT_DOUBLE_EQ(attention_time(two_lengths(), kGpu, narrow).seconds, whole);
}

TEST(AttentionCurve, NeedsSamplesOfThisMaskAndDirection) {
  const Attention full = {1, 8, 8, 128, 2048, 2048, false, false};
  EXPECT_THROW(attention_time(two_lengths(), kGpu, full), MissingCalibration);
}

// The chart that the profiles come from: FlashAttention-2, 16 heads of 128, 16k tokens, forward with
// backward.
TEST(AttentionCurve, ForwardAndBackwardAddUpToThePublishedRateOfBoth) {
  const std::pair<const char*, double> published[] = {{"a100-sxm-80gb", 182e12}, {"h100-sxm", 308e12}};
  for (const auto& [name, both] : published) {
    Attention attention = {2, 16, 16, 128, 8192, 8192, true, false};
    Profile profile = read_profile(name);
    profile.gpu = {};  // timed on kGpu, whose multiprocessors are not on record
    use_attention(profile, "flash-2");
    double seconds = attention_time(profile, kGpu, attention).seconds;
    attention.backward = true;
    seconds += attention_time(profile, kGpu, attention).seconds;
    EXPECT_NEAR(3.5 * full_forward_flops(attention) / 2 / seconds, both, 1e-3 * both);
  }
}

// The charts of FlashAttention-3: cuDNN forward 529 TFLOPS with the mask; backward 518 against the 318 of
// FlashAttention-2, both without.
TEST(AttentionCurve, OfCudnnIsFasterByWhatTheChartsShow) {
  Attention attention = {2, 16, 16, 128, 8192, 8192, true, false};
  Profile cudnn = read_profile("h100-sxm"), flash = cudnn;
  use_attention(flash, "flash-2");
  const auto faster = [&] {
    return attention_time(flash, kGpu, attention).seconds / attention_time(cudnn, kGpu, attention).seconds;
  };
  EXPECT_NEAR(faster(), 529.0 / 333, 1e-3);
  attention.backward = true;
  EXPECT_NEAR(faster(), 518.0 / 318, 1e-3);
}

// 8 heads of 4096 tokens are 256 causal blocks of 128 rows for 128 SMs: two an SM. The longest block takes as
// long as two average ones, and half of it runs alone: 3 instead of 2. The charts' 2048 blocks: 17 for 16.
TEST(AttentionCurve, FewBlocksLeaveMultiprocessorsIdle) {
  Gpu gpu = kGpu;
  const Attention few = {1, 8, 8, 128, 4096, 4096, true, false};
  const double full = attention_time(two_lengths(), gpu, few).seconds;
  gpu.multiprocessors = 128;
  EXPECT_NEAR(attention_time(two_lengths(), gpu, few).seconds, full * (3.0 / 2) / (17.0 / 16), 1e-9 * full);
  Profile measured = two_lengths();
  measured.how = How::measured;  // of the very shape, as it fills the GPU
  EXPECT_DOUBLE_EQ(attention_time(measured, gpu, few).seconds, full);
}

RC_GTEST_PROP(AttentionCurve, TakesTwiceAsLongForTwiceTheHeads, (bool causal, bool backward)) {
  Profile profile = read_profile("a100-sxm-80gb");
  profile.gpu = {};  // timed on kGpu, whose multiprocessors are not on record
  Attention attention = {1, 8, 8, 128, 0, 0, causal, backward};
  attention.query = attention.keys = std::int64_t{1} << *rc::gen::inRange(10, 16);
  const double seconds = attention_time(profile, kGpu, attention).seconds;
  attention.heads *= 2;
  RC_ASSERT(std::abs(attention_time(profile, kGpu, attention).seconds - 2 * seconds) < 1e-9 * seconds);
}

}  // namespace
}  // namespace rehearse
