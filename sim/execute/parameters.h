// Where do a rank's parameters, their gradients and Adam's state lie, and which ranks hold other parts of
// them?
//
// Elements that are gathered or reduced together are contiguous: a segment for each unit of a stage. Three
// kinds of parameters have segments of their own. Tensor-parallel ranks sum the first kind once a step. The
// second is the table that first and last stage share. The third are experts, whose ranks differ from those
// of all else. Every replica steps its own shard of each segment (Rajbhandari et al. 2020, section 5). With
// ZeRO-2 it keeps only that shard of the gradients, with ZeRO-3 also only that shard of the values.
#pragma once

#include <string>
#include <vector>

#include "execute/slice.h"
#include "execute/state_types.h"
#include "execute/training.h"
#include "kernels/device.h"

namespace rehearse {

enum class SummedOver : std::uint8_t { replicas, tensor_ranks_too, other_stage_too, expert_replicas };

// Memory of elements `first` .. of a segment.
struct Elements {
  kernels::Buffer memory;
  kernels::Type type = kernels::Type::fp32;
  std::int64_t first = 0, count = 0;

  Elements() = default;
  Elements(kernels::Device& device, kernels::Type each, std::int64_t begin, std::int64_t elements,
           kernels::Place place = kernels::Place::device)
      : memory(device, static_cast<std::size_t>(elements) * kernels::bytes_of(each), place),
        type(each),
        first(begin),
        count(elements) {}
  bool holds(std::int64_t element) const { return element >= first && element < first + count; }
  void* at(std::int64_t element) const {
    return static_cast<std::byte*>(memory.data()) +
           (element - first) * static_cast<std::int64_t>(kernels::bytes_of(type));
  }
};

struct Segment {
  int stage = 0;
  int unit = 0;  // of the stage, in model order
  SummedOver summed = SummedOver::replicas;
  bool read_by_two_units = false;  // the table of a rank that holds embedding and tied head
  std::int64_t elements = 0;
  std::int64_t divided_elements = 0;             // the first ones: tensor-parallel ranks hold different parts
  std::int64_t own_first = 0, own_elements = 0;  // this rank's shard
  Elements values, gradients;                    // whole, or only the shard
  Elements mean, square;                         // of the shard
  Elements master, gradient_copy;                // of the shard, where the recipe has them
  Elements host_values, host_gradients;          // of the shard, where the optimizer steps at the host

  bool is_of_experts() const { return summed == SummedOver::expert_replicas; }
  kernels::Tensor own(const Elements& of) const { return range(of, own_first, own_elements); }
  kernels::Tensor whole(const Elements& of) const { return range(of, 0, elements); }
  kernels::Tensor whole(void* memory, kernels::Type type) const { return {memory, type, 1, elements}; }
  static kernels::Tensor range(const Elements& of, std::int64_t first, std::int64_t count) {
    return {of.at(first), of.type, 1, count};
  }
  std::size_t bytes(kernels::Type type) const {
    return static_cast<std::size_t>(elements) * kernels::bytes_of(type);
  }
  std::size_t own_bytes(kernels::Type type) const {
    return static_cast<std::size_t>(own_elements) * kernels::bytes_of(type);
  }
  // Whether the reduction over replicas completes the gradients, without another sum.
  bool is_summed_over_replicas_alone() const {
    return summed == SummedOver::replicas || summed == SummedOver::expert_replicas;
  }
  // Gradients that the optimizer reads (at the host if it steps there, or their copy), and values that it
  // writes.
  const Elements& sums() const { return host_gradients.count > 0 ? host_gradients : gradients; }
  const Elements& stepped() const { return gradient_copy.count > 0 ? gradient_copy : sums(); }
  const Elements& written() const { return host_values.count > 0 ? host_values : values; }
};

struct Parameter {
  std::string name;  // "layers.3.qkv_weight"
  Slice slice;
  std::size_t segment = 0;
  bool divided = false;  // tensor-parallel ranks hold different parts
  std::int64_t elements = 0;
  std::int64_t first = 0;  // element of the segment
};

// Division of state among ranks with the same parameters: this rank steps shard `shard` of `shards`.
struct Division {
  int shard = 0, shards = 1;
  bool values = false, gradients = false;  // no rank keeps them whole
};

class Parameters {
 public:
  Parameters(const Division& dense, const Division& experts, const StateTypes& types)
      : dense_(dense), experts_(experts), types_(types) {}

  const Division& division(const Segment& segment) const {
    return segment.is_of_experts() ? experts_ : dense_;
  }

  // Whether gradients of single microbatches go to the host, which sums them for the optimizer.
  bool adds_up_at_host(const Segment& segment) const {
    return types_.optimizer == kernels::Place::host && division(segment).gradients &&
           segment.is_summed_over_replicas_alone();
  }

  // Returns the parameter's index. Of `where` only stage, unit and summed are read.
  std::size_t add(const Segment& where, std::string name, Slice slice, std::int64_t elements);
  // Called once all parameters are added.
  void allocate(kernels::Device& device);
  // Sets all values and master weights by initial_values(), and moments to 0.
  void initialise(kernels::Stream& stream, std::uint64_t seed);

  std::vector<Segment>& segments() { return segments_; }
  const std::vector<Segment>& segments() const { return segments_; }
  const std::vector<Parameter>& all() const { return parameters_; }

 private:
  void place(bool divided);
  void initialise(const Elements& to, const Parameter& parameter, kernels::Stream& stream,
                  std::uint64_t seed) const;

  Division dense_, experts_;
  StateTypes types_;
  std::vector<Segment> segments_;
  std::vector<Parameter> parameters_;
};

}  // namespace rehearse
