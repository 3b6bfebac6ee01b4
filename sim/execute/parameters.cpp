#include "execute/parameters.h"

#include <algorithm>

namespace rehearse {

namespace {

constexpr std::int64_t kAlignment = 16;  // elements: 64 bytes of fp32

std::int64_t round_up(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

std::size_t Parameters::add(const Segment& where, std::string name, Slice slice, std::int64_t elements) {
  auto segment = std::find_if(segments_.begin(), segments_.end(), [&](const Segment& other) {
    return other.stage == where.stage && other.unit == where.unit && other.summed == where.summed;
  });
  if (segment == segments_.end()) {
    segments_.emplace_back();
    segment = segments_.end() - 1;
    segment->stage = where.stage;
    segment->unit = where.unit;
    segment->summed = where.summed;
  }
  const auto index = static_cast<std::size_t>(segment - segments_.begin());
  const bool divided = slice.whole_elements() > elements;
  parameters_.push_back({std::move(name), std::move(slice), index, divided, elements, 0});
  return parameters_.size() - 1;
}

// Places parameters behind the ones that their segments already have.
void Parameters::place(bool divided) {
  for (Parameter& parameter : parameters_) {
    if (parameter.divided != divided) continue;
    std::int64_t& elements = segments_[parameter.segment].elements;
    parameter.first = elements;
    elements += round_up(parameter.elements, kAlignment);
  }
}

void Parameters::allocate(kernels::Device& device) {
  place(true);
  for (Segment& segment : segments_) segment.divided_elements = segment.elements;
  place(false);
  for (Segment& segment : segments_) {
    const Division& among = division(segment);
    segment.elements = round_up(segment.elements, kAlignment * among.shards);
    segment.own_elements = segment.elements / among.shards;
    segment.own_first = segment.own_elements * among.shard;
    const auto shard = [&](kernels::Type type, kernels::Place place) {
      return Elements(device, type, segment.own_first, segment.own_elements, place);
    };
    const auto make = [&](kernels::Type type, bool shard_alone, kernels::Place place) {
      return shard_alone ? shard(type, place) : Elements(device, type, 0, segment.elements, place);
    };
    const bool at_host = types_.optimizer == kernels::Place::host;
    const bool sums_at_host = adds_up_at_host(segment);
    segment.values = make(types_.value, among.values, kernels::Place::device);
    segment.gradients =
        make(types_.gradient, among.gradients, sums_at_host ? kernels::Place::host : kernels::Place::device);
    segment.mean = shard(types_.moment, types_.optimizer);
    segment.square = shard(types_.moment, types_.optimizer);
    if (types_.has_master) segment.master = shard(kernels::Type::fp32, types_.optimizer);
    if (types_.stepped_gradient != types_.gradient)
      segment.gradient_copy = shard(types_.stepped_gradient, types_.optimizer);
    if (at_host) segment.host_values = shard(types_.value, kernels::Place::host);
    if (at_host && !sums_at_host) segment.host_gradients = shard(types_.gradient, kernels::Place::host);
  }
}

void Parameters::initialise(kernels::Stream& stream, std::uint64_t seed) {
  for (const Segment& segment : segments_) {
    for (const Elements* elements : {&segment.values, &segment.gradients, &segment.mean, &segment.square,
                                     &segment.master, &segment.host_values, &segment.host_gradients})
      if (elements->count > 0) stream.clear(elements->memory.data(), elements->memory.bytes());
  }
  for (const Parameter& parameter : parameters_) {
    const Segment& segment = segments_[parameter.segment];
    for (const Elements* elements : {&segment.values, &segment.master, &segment.host_values})
      if (elements->count > 0) initialise(*elements, parameter, stream, seed);
  }
  stream.synchronize();  // others read them
}

void Parameters::initialise(const Elements& to, const Parameter& parameter, kernels::Stream& stream,
                            std::uint64_t seed) const {
  const std::int64_t first = std::max<std::int64_t>(0, to.first - parameter.first);
  const std::int64_t last = std::min(parameter.elements, to.first + to.count - parameter.first);
  kernels::Randomise values = initial_values(seed, parameter.name);
  for (const Slice::Stretch& stretch : parameter.slice.stretches(first, last)) {
    values.output = Segment::range(to, parameter.first + stretch.first, stretch.count);
    values.draws = stretch.whole;
    stream.launch(values);
  }
}

}  // namespace rehearse
