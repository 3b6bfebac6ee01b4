#include "gpu/cases.h"

namespace rehearse::kernels {

std::size_t Draw::given(Type its, std::int64_t rows, std::int64_t columns, std::vector<float> values) {
  for (float& value : values) value = rounded(value, its);
  operands.push_back({its, rows, columns, std::move(values), false});
  return operands.size() - 1;
}

std::size_t Draw::of(Type its, std::int64_t rows, std::int64_t columns, float low, float high) {
  std::uniform_real_distribution<float> number(low, high);
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = number(bits_);
  return given(its, rows, columns, std::move(values));
}

std::size_t Draw::integers(Type its, std::int64_t rows, std::int64_t columns, std::int64_t bound) {
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& value : values) value = static_cast<float>(size(0, bound - 1));
  return given(its, rows, columns, std::move(values));
}

std::size_t Draw::out(Type its, std::int64_t rows, std::int64_t columns) {
  const std::size_t index = spacing(its) > 0 ? of(its, rows, columns) : integers(its, rows, columns, 2);
  operands[index].written = true;
  return index;
}

std::vector<Maker> all_cases() {
  std::vector<Maker> all;
  for (const auto& some : {multiply_cases(), attention_cases(), fused_attention_cases(), pointwise_cases(),
                           state_space_cases(), token_cases(), optimizer_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

std::vector<std::vector<float>> outcome(Device& device, const Case& one, bool as_fp32) {
  const auto stream = device.make_stream();
  std::vector<Buffer> memory;
  std::vector<std::vector<std::byte>> bytes;
  Tensors tensors;
  for (const Operand& operand : one.operands) {
    const Type type = as_fp32 && spacing(operand.type) > 0 ? Type::fp32 : operand.type;
    bytes.push_back(encode(operand.values, type));
    memory.emplace_back(device, bytes.back().size());
    stream->copy(memory.back().data(), bytes.back().data(), bytes.back().size());
    tensors.emplace_back(memory.back().data(), type, operand.rows, operand.columns);
  }
  stream->launch(one.call(tensors));
  std::vector<std::vector<float>> results;
  for (std::size_t i = 0; i < one.operands.size(); ++i) {
    if (!one.operands[i].written) continue;
    stream->copy(bytes[i].data(), memory[i].data(), bytes[i].size());
    stream->synchronize();
    results.push_back(decode(bytes[i], tensors[i].type));
  }
  return results;
}

}  // namespace rehearse::kernels
