// bf16 and fp16 on the CPU: every call gives the rounded result of fp32 on the same numbers.
#include "kernels/short_float.h"

#include <bit>

#include "gpu/cases.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

constexpr unsigned kTrials = 2;
constexpr std::array kShort = {Type::bf16, Type::fp16};

// tests/gpu/numbers.h rounds by another way, in doubles.
TEST(ShortFloat, IsTheNearest) {
  std::mt19937 bits(1);
  for (int i = 0; i < 200000; ++i) {
    const auto number = std::bit_cast<float>(static_cast<std::uint32_t>(bits()));
    if (std::isnan(number)) {
      EXPECT_TRUE(std::isnan(float{Bf16(number)}) && std::isnan(float{Fp16(number)}));
      continue;
    }
    const bool overflows_bf16 = std::abs(number) >= 0x1.FFp127F, overflows_fp16 = std::abs(number) >= 65520;
    const float inf = std::copysign(INFINITY, number);
    EXPECT_EQ(float{Bf16(number)}, overflows_bf16 ? inf : rounded(number, Type::bf16)) << number;
    EXPECT_EQ(float{Fp16(number)}, overflows_fp16 ? inf : rounded(number, Type::fp16)) << number;
    const float near_one = std::ldexp(number, -std::ilogb(number) - static_cast<int>(i % 30U));
    EXPECT_EQ(float{Fp16(near_one)}, rounded(near_one, Type::fp16)) << near_one;
  }
  EXPECT_EQ(float{Bf16(std::numeric_limits<float>::max())}, INFINITY);
  EXPECT_EQ(float{Bf16(1 + 0x1p-8F)}, 1);            // half way: to the even one below,
  EXPECT_EQ(float{Bf16(1 + 0x3p-8F)}, 1 + 0x1p-6F);  // and above
  EXPECT_EQ(float{Fp16(0x1p-25F)}, 0);               // half of the least
  EXPECT_EQ(float{Fp16(0x1.8p-24F)}, 0x1p-23F);
  for (std::uint32_t all = 0; all < 0x10000; ++all) {  // exact values stay
    Fp16 half;
    half.bits = static_cast<std::uint16_t>(all);
    ASSERT_TRUE(std::isnan(float{half}) || Fp16(float{half}).bits == half.bits) << all;
  }
}

Fp16 half_of(std::uint32_t bits) {
  Fp16 half;
  half.bits = static_cast<std::uint16_t>(bits);
  return half;
}

// Every number of fp16 by its formula, in doubles.
TEST(ShortFloat, OfFp16IsWhatItsBitsSay) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double sign = bits < 0x8000 ? 1 : -1, fraction = bits & 0x3FFU;
    const std::uint32_t exponent = bits >> 10 & 31U;
    const float found{half_of(bits)};
    if (exponent == 31 && fraction > 0) {
      ASSERT_TRUE(std::isnan(found)) << bits;
      ASSERT_TRUE(std::isnan(float{Fp16(found)})) << bits;
      continue;
    }
    const double size = exponent == 31  ? double{INFINITY}
                        : exponent == 0 ? fraction * 0x1p-24
                                        : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    ASSERT_EQ(double{found}, sign * size) << bits;
    ASSERT_EQ(std::signbit(found), sign < 0) << bits;
    ASSERT_EQ(Fp16(found).bits, bits);
  }
}

// A value half way between two numbers of fp16 rounds to the even one, other values to the nearest. Above the
// largest number the next would be 2^16.
TEST(ShortFloat, OfFp16RoundsToNearestEven) {
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float below{half_of(bits)}, above = bits + 1 == 0x7C00 ? 0x1p16F : float{half_of(bits + 1)};
    const float middle = (below + above) / 2;
    for (const std::uint32_t sign : {0U, 0x8000U}) {
      const auto rounds = [sign](float number) {
        return std::uint32_t{Fp16(sign == 0 ? number : -number).bits} ^ sign;
      };
      ASSERT_EQ(rounds(middle), bits + (bits & 1U)) << bits;
      ASSERT_EQ(rounds(std::nextafter(middle, 0.0F)), bits) << bits;
      ASSERT_EQ(rounds(std::nextafter(middle, INFINITY)), bits + 1) << bits;
    }
  }
}

// Operands that are fp32 only in the GPU's table, in slices, in place or adjacent.
Case into_wider(Draw& draw) {
  const std::size_t a = draw.of(7, 12), b = draw.of(12, 9), c = draw.out(Type::fp32, 7, 9),
                    bias = draw.of(1, 9);
  return draw.finish(
      [=](const Tensors& t) { return Multiply{t[a], t[b], t[c], t[bias], false, false, true}; });
}

// Heads as columns of one matrix, one GEMM each: they begin within each other's rows.
Case heads_side_by_side(Draw& draw) {
  const bool accumulate = draw.coin();
  const std::size_t a = draw.of(6, 20), b = draw.of(6, 20), c = draw.out(6, 26);
  return draw.finish([=](const Tensors& t) {
    return Multiply{
        t[a].slice(0, 5), t[b].slice(0, 5), t[c].slice(1, 6), {}, false, true, accumulate, 4, 5, 5, 6};
  });
}

// q, k and v are columns of one matrix, and so are their gradients; the matrix has more of them.
Case attention_in_slices(Draw& draw) {
  AttentionShape shape;
  shape.queries = shape.keys = {2, 9, true, {}};
  shape.heads = 4;
  shape.kv_heads = 2;
  shape.head_dim = shape.v_head_dim = 4;
  const std::size_t qkv = draw.of(18, 35), gradients = draw.out(18, 35), dy = draw.of(18, 16),
                    y = draw.of(18, 16), sums = draw.of(Type::fp32, 18, 4, 1, 2);
  return draw.finish([=](const Tensors& t) {
    return AttentionBackward{
        shape, t[dy],   t[qkv].slice(1, 16),       t[qkv].slice(17, 8),       t[qkv].slice(25, 8),
        t[y],  t[sums], t[gradients].slice(1, 16), t[gradients].slice(17, 8), t[gradients].slice(25, 8)};
  });
}

Case rotary_in_place(Draw& draw) {
  const std::size_t qk = draw.out(10, 30);
  return draw.finish([=](const Tensors& t) {
    const Tensor query = t[qk].slice(2, 16), key = t[qk].slice(18, 8);
    return Rotary{{2, 5, true, {}}, 4, 2, 10000, false, query, key, query, key};
  });
}

Case add_in_place(Draw& draw) {
  const std::size_t sum = draw.out(8, 30), more = draw.of(8, 11);
  return draw.finish([=](const Tensors& t) {
    Add call;
    call.inputs = {t[sum].slice(3, 11), t[more], t[more]};
    call.output = t[sum].slice(3, 11);
    return call;
  });
}

// Not all rows of the output have a place.
Case spread_to_some(Draw& draw) {
  const std::size_t in = draw.of(2, 5), place = draw.given(Type::int32, 1, 4, {6, 1, 3, 0}),
                    out = draw.out(8, 5);
  return draw.finish([=](const Tensors& t) { return SpreadRows{t[in], {}, t[place], t[out], {}, 2}; });
}

Case short_weight_gradients(Draw& draw) {
  const std::size_t dy = draw.of(9, 14), in = draw.of(9, 14), dw = draw.out(1, 14), db = draw.out(1, 14);
  return draw.finish([=](const Tensors& t) {
    return NormWeightGradient{{true}, t[dy], t[in], t[dw], t[db]};
  });
}

Case short_bias_gradient(Draw& draw) {
  const std::size_t dy = draw.of(9, 14), db = draw.out(1, 14);
  return draw.finish([=](const Tensors& t) { return BiasGradient{t[dy], t[db]}; });
}

Case short_table_gradients(Draw& draw) {
  const std::size_t dy = draw.of(9, 6), tokens = draw.integers(Type::int64, 1, 9, 8), table = draw.out(5, 6);
  return draw.finish([=](const Tensors& t) { return EmbeddingBackward{t[dy], t[tokens], t[table], 2}; });
}

Case short_position_gradients(Draw& draw) {
  const std::size_t dy = draw.of(8, 6), table = draw.out(5, 6);
  return draw.finish([=](const Tensors& t) { return PositionsBackward{{2, 4, true, {}}, t[dy], t[table]}; });
}

Case short_logits(Draw& draw) {
  const std::size_t logits = draw.of(draw.type, 5, 12, -9, 9), labels = draw.integers(Type::int64, 1, 5, 14),
                    most = draw.of(Type::fp32, 1, 5, 8, 9), e = draw.out(Type::fp32, 5, 12),
                    target = draw.out(Type::fp32, 1, 5), sum = draw.out(Type::fp32, 1, 5);
  return draw.finish([=](const Tensors& t) {
    return LossExponentials{t[logits], t[labels], t[most], t[e], t[target], t[sum], 1};
  });
}

Case maximum_of_short_logits(Draw& draw) {
  const std::size_t logits = draw.of(draw.type, 5, 12, -9, 9), most = draw.out(Type::fp32, 1, 5);
  return draw.finish([=](const Tensors& t) { return LossMaximum{t[logits], t[most]}; });
}

std::vector<Maker> cases() {
  std::vector<Maker> all = all_cases();
  for (const auto& [name, make] : std::initializer_list<std::pair<const char*, Case (*)(Draw&)>>{
           {"multiply into wider", into_wider},
           {"multiply heads side by side", heads_side_by_side},
           {"attention in slices", attention_in_slices},
           {"rotary in place", rotary_in_place},
           {"add in place", add_in_place},
           {"spread to some", spread_to_some},
           {"short weight gradients", short_weight_gradients},
           {"short bias gradient", short_bias_gradient},
           {"short table gradients", short_table_gradients},
           {"short position gradients", short_position_gradients},
           {"short logits", short_logits},
           {"maximum of short logits", maximum_of_short_logits}})
    all.push_back({name, make});
  return all;
}

TEST(ShortFloat, EveryCallRoundsWhatFp32Makes) {
  const auto cpu = open_cpu();
  for (const Maker& maker : cases()) {
    if (maker.of_fp8) continue;
    for (const Type type : kShort) {
      SCOPED_TRACE(maker.name + (type == Type::bf16 ? " bf16" : " fp16"));
      for (unsigned trial = 0; trial < kTrials; ++trial) {
        Draw draw(trial, type);
        const Case one = maker.make(draw);
        const auto found = outcome(*cpu, one, false), wide = outcome(*cpu, one, true);
        std::size_t next = 0;
        for (const Operand& operand : one.operands) {
          if (!operand.written) continue;
          for (std::size_t i = 0; i < operand.values.size(); ++i)
            ASSERT_EQ(found[next][i], rounded(wide[next][i], operand.type)) << "element " << i;
          ++next;
        }
      }
    }
  }
}

// Operands that a GPU wants alike, and statistics that are fp32 on every device.
TEST(ShortFloat, IsRefusedWhereAGpuRefusesIt) {
  std::vector<Bf16> narrow(8);
  std::vector<float> wide(8);
  const Tensor half = vector_of(narrow, Type::bf16), whole = vector_of(wide, Type::fp32);
  Add add;
  add.inputs = {half, whole};
  add.output = half;
  EXPECT_THROW(run_on_cpu({add}), DeviceError);
  EXPECT_THROW(run_on_cpu({Norm{{}, half, whole, {}, half}}), DeviceError);
  EXPECT_THROW(run_on_cpu({LossShift{half, whole, half}}), DeviceError);
  EXPECT_THROW(run_on_cpu({SquareSum{half, half}}), DeviceError);
  EXPECT_THROW(run_on_cpu({Adam{half, half, whole, whole, half, {}}}), DeviceError);
  EXPECT_NO_THROW(run_on_cpu({Adam{half, whole, whole, whole, half, {}}}));
}

}  // namespace
}  // namespace rehearse::kernels
