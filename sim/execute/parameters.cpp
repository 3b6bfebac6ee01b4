#include "execute/parameters.h"

#include <algorithm>

namespace rehearse {

namespace {

constexpr std::int64_t kAlignment = 16;  // elements: 64 bytes

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

std::size_t Parameters::add(const Segment& where, std::string name, Slice slice, std::int64_t elements) {
  auto segment = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& other) {
    return other.stage == where.stage && other.part == where.part && other.summed == where.summed;
  });
  if (segment == segments_.end()) {
    segments_.emplace_back();
    segment = segments_.end() - 1;
    segment->stage = where.stage;
    segment->part = where.part;
    segment->summed = where.summed;
  }
  const auto index = static_cast<std::size_t>(segment - segments_.begin());
  parameters_.push_back({std::move(name), std::move(slice), index, segment->elements});
  segment->elements += round_up(elements, kAlignment);
  return parameters_.size() - 1;
}

void Parameters::allocate(kernels::Device& device) {
  for (Segment& segment : segments_) {
    segment.elements = round_up(segment.elements, kAlignment * shards_);
    segment.own_elements = segment.elements / shards_;
    segment.own_first = segment.own_elements * shard_;
    const auto bytes = static_cast<std::size_t>(segment.elements) * sizeof(float);
    segment.values = kernels::Buffer(device, bytes);
    segment.gradients = kernels::Buffer(device, bytes);
    const auto own_bytes = static_cast<std::size_t>(segment.own_elements) * sizeof(float);
    segment.mean = kernels::Buffer(device, own_bytes);
    segment.square = kernels::Buffer(device, own_bytes);
  }
}

void Parameters::initialise(kernels::Stream& stream, std::uint64_t seed) {
  for (const Segment& segment : segments_) {
    for (const kernels::Buffer* buffer :
         {&segment.values, &segment.gradients, &segment.mean, &segment.square})
      stream.clear(buffer->data(), buffer->bytes());
  }
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    std::vector<float> values;
    parameters_[i].slice.for_each([&](std::int64_t /*own*/, std::int64_t whole) {
      values.push_back(initial_value(seed, parameters_[i].name, whole));
    });
    stream.copy(value(i), values.data(), values.size() * sizeof(float));
    stream.synchronize();  // the copy reads `values`
  }
}

}  // namespace rehearse
