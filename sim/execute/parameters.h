// Where do a rank's parameters, their gradients and Adam's moments lie, and who else holds a part of them?
//
// What is reduced together lies side by side: a segment for each part of a stage's reduction, and of it one
// for what tensor-parallel ranks sum once a step and one for the table that first and last stage share. With
// ZeRO-1 every replica steps its own shard of each segment (Rajbhandari et al. 2020, section 5.1).
#pragma once

#include <string>
#include <vector>

#include "execute/slice.h"
#include "execute/training.h"
#include "kernels/device.h"

namespace rehearse {

enum class SummedOver : std::uint8_t { replicas, tensor_ranks_too, other_stage_too };

struct Segment {
  int stage = 0;
  int part = 0;  // of the stage's reduction
  SummedOver summed = SummedOver::replicas;
  std::int64_t elements = 0;
  std::int64_t own_first = 0, own_elements = 0;  // this rank's shard
  kernels::Buffer values, gradients, mean, square;

  kernels::Tensor whole(const kernels::Buffer& of) const { return range(of, 0, elements); }
  kernels::Tensor own(const kernels::Buffer& of) const { return range(of, own_first, own_elements); }
  static kernels::Tensor range(const kernels::Buffer& of, std::int64_t first, std::int64_t count) {
    return {static_cast<float*>(of.data()) + first, kernels::Type::fp32, 1, count};
  }
};

struct Parameter {
  std::string name;  // "layers.3.qkv_weight"
  Slice slice;
  std::size_t segment = 0;
  std::int64_t first = 0;  // element of the segment
};

class Parameters {
 public:
  // `shards` replicas step `shard` each.
  Parameters(int shard, int shards) : shard_(shard), shards_(shards) {}

  // Returns the parameter's index.
  std::size_t add(const Segment& where, std::string name, Slice slice, std::int64_t elements);
  // Once all are added.
  void allocate(kernels::Device& device);
  // All values as initial_value() says; moments 0.
  void initialise(kernels::Stream& stream, std::uint64_t seed);

  float* value(std::size_t index) const { return at(index, &Segment::values); }
  float* gradient(std::size_t index) const { return at(index, &Segment::gradients); }

  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Parameter>& all() const { return parameters_; }

 private:
  float* at(std::size_t index, kernels::Buffer Segment::*which) const {
    const Parameter& parameter = parameters_[index];
    return static_cast<float*>((segments_[parameter.segment].*which).data()) + parameter.first;
  }

  int shard_, shards_;
  std::vector<Segment> segments_;
  std::vector<Parameter> parameters_;
};

}  // namespace rehearse
