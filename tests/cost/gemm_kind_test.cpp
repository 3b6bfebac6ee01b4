// GEMMs are told apart by pass, group and the alignment of their rows.
#include "cost/gemm_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "cost/gemm_curve.h"
#include "machines.h"

namespace rehearse {
namespace {

// The output layer of GPT-2 over `tokens`: each of its passes has the vocabulary in the rows of an operand.
Gemm output_layer(GemmPass pass, std::int64_t vocab, std::int64_t tokens = 8192) {
  constexpr std::int64_t kHidden = 768;
  Gemm gemm{tokens, vocab, kHidden};
  if (pass == GemmPass::input_gradient) gemm = {tokens, kHidden, vocab};
  if (pass == GemmPass::weight_gradient) gemm = {vocab, kHidden, tokens};
  gemm.pass = pass;
  return gemm;
}

constexpr GemmPass kPasses[] = {GemmPass::forward, GemmPass::input_gradient, GemmPass::weight_gradient};

TEST(GemmKind, RowsOfTheVocabularyDecideInEveryPass) {
  for (const GemmPass pass : kPasses) {
    EXPECT_EQ(gemm_kind(output_layer(pass, 50257), "bf16").align, 1);
    EXPECT_EQ(gemm_kind(output_layer(pass, 25130), "fp16").align, 2);
    EXPECT_EQ(gemm_kind(output_layer(pass, 50260), "fp16").align, 2);
    EXPECT_EQ(gemm_kind(output_layer(pass, 50264), "bf16").align, 8);
  }
}

TEST(GemmKind, TokensAreNoRow) {
  for (const GemmPass pass : kPasses) EXPECT_EQ(gemm_kind(output_layer(pass, 50304, 8191), "bf16").align, 8);
}

TEST(GemmKind, OperandsOfOtherSizesCountAsAligned) {
  EXPECT_EQ(gemm_kind(output_layer(GemmPass::forward, 50257), "fp32").align, 8);
  EXPECT_EQ(gemm_kind(output_layer(GemmPass::forward, 50257), "fp8").align, 8);
}

TEST(GemmKind, EveryKindHasAKeyOfItsOwn) {
  const std::vector<std::string> keys = gemm_keys("bf16");
  EXPECT_EQ(std::set(keys.begin(), keys.end()).size(), 18U);
  EXPECT_EQ(gemm_key("bf16", {GemmPass::weight_gradient, true, 1}), "bf16/grouped/weight_gradient/align1");
  EXPECT_EQ(gemm_key("bf16", {}), "bf16");
}

TEST(GemmKind, WhatAProfileDoesNotTellApartIsForwardAndAlignedAlikeBeforeItIsAligned) {
  Profile profile;
  profile.gemm["fp16"] = {{64, 64, 64, 1}};
  const GemmKind odd{GemmPass::weight_gradient, false, 1};
  EXPECT_EQ(known_gemms(profile, "bf16", odd).samples, &profile.gemm["fp16"]);
  profile.gemm["fp16/weight_gradient"] = {{64, 64, 64, 2}};
  EXPECT_EQ(known_gemms(profile, "bf16", odd).samples, &profile.gemm["fp16/weight_gradient"]);
  profile.gemm["fp16/align1"] = {{64, 64, 63, 3}};
  EXPECT_EQ(known_gemms(profile, "bf16", odd).samples, &profile.gemm["fp16/align1"]);
  EXPECT_EQ(known_gemms(profile, "bf16", odd).kind.align, 1);
  EXPECT_THROW(known_gemms(profile, "fp32", odd), MissingCalibration);
}

// 512 x 4096 are 128 tiles on 108 multiprocessors: without parts of the sum to fill the second wave, larger
// GEMMs run at a higher rate.
TEST(GemmKind, KernelsThatLoadPiecemealDoNotSplitTheSum) {
  Profile profile;
  profile.gemm["fp16"] = {{512, 4096, 4096, 1e-4}};
  profile.gemm["fp16/align1"] = {{512, 4096, 4095, 3e-4}};
  const Gpu gpu = test::dgx_a100().gpu;
  const GemmCurve split = gemm_curve(profile, gpu, "fp16"),
                  whole = gemm_curve(profile, gpu, "fp16", {GemmPass::forward, false, 1});
  EXPECT_TRUE(split.splits_k);
  EXPECT_FALSE(whole.splits_k);
  const Gemm large{8192, 8192, 4095};
  EXPECT_LT(gemm_time(whole, large).seconds, 3e-4 * 32);
  EXPECT_NEAR(gemm_time(whole, {512, 4096, 4095}).seconds, 3e-4, 1e-12);
}

// 8 bytes of 4096 x 4096 take 66 us of an A100's memory bandwidth. Over four times a sample's tokens, the
// time is four times as long where tiles hide that traffic. It is less where the traffic was added to the
// tiles' time.
TEST(GemmKind, TilesOfWeightGradientsHideWhatTheirSumsMoveWhereTheProfileSaysSo) {
  Profile profile;
  profile.gemm["fp16"] = {{4096, 4096, 4096, 6e-4}};
  profile.gemm["fp16/weight_gradient"] = {{4096, 4096, 4096, 6e-4}};
  Gpu gpu = test::dgx_a100().gpu;
  gpu.multiprocessors = 108;
  Gemm longer{4096, 4096, 16384};
  longer.pass = GemmPass::weight_gradient;
  longer.result_bytes = kAccumulatedBytes;
  const double added = gemm_time(profile, gpu, longer, "fp16").seconds;
  profile.hidden_sums = 1;
  const double hidden = gemm_time(profile, gpu, longer, "fp16").seconds;
  EXPECT_GT(hidden, 4 * 6e-4 * 0.96);
  EXPECT_LT(hidden, 4 * 6e-4);
  EXPECT_LT(added, 0.95 * hidden);
  longer.k = 4096;
  EXPECT_NEAR(gemm_time(profile, gpu, longer, "fp16").seconds, 6e-4, 1e-12);
}

// Elsewhere, misaligned GEMMs are slower still. On an H200 they take eight times as long as aligned ones
// (72000 x 3072 x 3072, an operand at an odd address: 14.2 ms against 1.715). On a T4 it is 2.4 times (an
// output layer of 50257, 101 ms against 43).
TEST(GemmKind, MisalignedProductsTakeSeveralTimesAsLong) {
  for (const char* name : {"a100-sxm-80gb", "h100-sxm"}) {
    const Profile profile = read_profile(name);
    const Gpu gpu = read_cluster(profile.gpu.name.starts_with("A100") ? "dgx-a100-80gb" : "dgx-h100").gpu;
    for (const GemmPass pass : kPasses) {
      const double odd = gemm_time(profile, gpu, output_layer(pass, 50257), "bf16").seconds,
                   even = gemm_time(profile, gpu, output_layer(pass, 50258), "bf16").seconds,
                   aligned = gemm_time(profile, gpu, output_layer(pass, 50264), "bf16").seconds;
      EXPECT_GT(odd, 2 * aligned) << name;
      EXPECT_LT(odd, 8 * aligned) << name;
      EXPECT_GT(odd, even) << name;
      EXPECT_GT(even, aligned) << name;
    }
  }
}

TEST(GemmKind, ExpertsOfAProfileWithoutGroupsAreOneProductAfterTheOther) {
  const Cluster cluster = read_cluster("dgx-h100");
  const Profile profile = read_profile("h100-sxm");
  Gemm experts{2048, 1536, 2048, 16, true}, heads = experts, one = experts;
  heads.of_experts = one.of_experts = false;
  one.batch = 1;
  const auto seconds = [&](const Gemm& gemm) {
    return gemm_time(profile, cluster.gpu, gemm, "bf16").seconds;
  };
  EXPECT_DOUBLE_EQ(seconds(experts), 16 * seconds(one));
  EXPECT_LT(seconds(heads), seconds(experts));
}

// With its own products of groups left out, B200's are predicted from its other ones.
TEST(GemmKind, ExpertsThatWereMeasuredAreNearerToCallsInTurnThanToOneProductOfAllRows) {
  const Gpu gpu = read_cluster("b200-8gpu").gpu;
  const Profile whole = read_profile("b200-sxm");
  Profile without = whole;
  for (const std::string& key : gemm_keys("fp16"))
    if (key.find("/grouped") != std::string::npos) without.gemm.erase(key);
  std::vector<double> in_turn, together;
  for (const GemmPass pass : {GemmPass::forward, GemmPass::input_gradient}) {
    for (const GemmSample& sample : whole.gemm.at(gemm_key("fp16", {pass, true}))) {
      Gemm gemm{sample.m, sample.n, sample.k, sample.batch, true, 1, pass};
      const auto error = [&] {
        return std::abs(gemm_time(without, gpu, gemm, "fp16").seconds / sample.seconds - 1);
      };
      in_turn.push_back(error());
      gemm.of_experts = false;
      together.push_back(error());
    }
  }
  ASSERT_EQ(in_turn.size(), 40U);
  const auto median = [](std::vector<double>& errors) {
    std::nth_element(errors.begin(), errors.begin() + 20, errors.end());
    return errors[20];
  };
  EXPECT_LT(median(in_turn), 0.1);
  EXPECT_GT(median(together), 0.18);
}

}  // namespace
}  // namespace rehearse
