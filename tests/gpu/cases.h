// A call with random operands, to be run on two devices.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "gpu/numbers.h"
#include "kernels/device.h"

namespace rehearse::kernels {

struct Operand {
  Type type = Type::fp32;
  std::int64_t rows = 0, columns = 0;
  std::vector<float> values;
  bool written = false;  // compared afterwards
};

using Tensors = std::vector<Tensor>;  // by operand

struct Case {
  std::vector<Operand> operands;
  std::function<Call(const Tensors&)> call;
  double terms = 1;      // that the longest sum in it has
  double roundings = 1;  // to the working type, between operands and results
  double fp8_steps = 0;  // number of sums of 32 GEMM steps each, which tensor cores keep to 14 bits
};

// Draws shapes and values. The CPU computes in fp32 on values that the working type can represent.
class Draw {
 public:
  Draw(unsigned seed, Type working) : bits_(seed), type(working) {}

  std::int64_t size(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(bits_);
  }
  // Width of a row: every second one is a multiple of eight, which kernels load in packs.
  std::int64_t width(std::int64_t least, std::int64_t most) {
    const std::int64_t some = size(least, most);
    return coin() ? some : (some + 7) / 8 * 8;
  }
  bool coin() { return size(0, 1) == 1; }

  // Operands of uniform numbers, each given back as its index.
  std::size_t of(Type its, std::int64_t rows, std::int64_t columns, float low = -1, float high = 1);
  std::size_t of(std::int64_t rows, std::int64_t columns) { return of(type, rows, columns); }
  std::size_t integers(Type its, std::int64_t rows, std::int64_t columns, std::int64_t bound);
  std::size_t given(Type its, std::int64_t rows, std::int64_t columns, std::vector<float> values);
  // Operands that the call writes or adds to; they start with numbers too.
  std::size_t out(Type its, std::int64_t rows, std::int64_t columns);
  std::size_t out(std::int64_t rows, std::int64_t columns) { return out(type, rows, columns); }

  Case finish(std::function<Call(const Tensors&)> call, double terms = 1, double roundings = 1) {
    return {std::move(operands), std::move(call), terms, roundings};
  }

 private:
  std::mt19937 bits_;

 public:
  const Type type;
  std::vector<Operand> operands;
};

// The required kernel of a call where the device has cuDNN: any, only cuDNN's, or only ours. With the last
// value the device is opened without cuDNN.
enum class Served : std::uint8_t { by_any, by_cudnn, by_own, without_cudnn };

struct Maker {
  std::string name;
  std::function<Case(Draw&)> make;
  bool of_fp8 = false;  // the working type is fp8 instead of the others
  Served served = Served::by_any;
};

std::vector<Maker> multiply_cases();
std::vector<Maker> attention_cases();
std::vector<Maker> fused_attention_cases();
std::vector<Maker> pointwise_cases();
std::vector<Maker> state_space_cases();
std::vector<Maker> token_cases();
std::vector<Maker> optimizer_cases();
std::vector<Maker> all_cases();

// The written operands after the call, on the device; fp32 instead of `working` when `as_fp32`.
std::vector<std::vector<float>> outcome(Device& device, const Case& one, bool as_fp32);

}  // namespace rehearse::kernels
