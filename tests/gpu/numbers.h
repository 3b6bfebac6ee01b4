// Numbers of every type, as their bits and as floats.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/tensor.h"

namespace rehearse::kernels {

// The nearest number of the type, ties to even; integers are kept as they are.
float rounded(float value, Type type);

// Bytes as they lie in memory, and back.
std::vector<std::byte> encode(const std::vector<float>& values, Type type);
std::vector<float> decode(const std::vector<std::byte>& bytes, Type type);

// Distance of 1 to the next number; 0 of integers.
double spacing(Type type);

}  // namespace rehearse::kernels
