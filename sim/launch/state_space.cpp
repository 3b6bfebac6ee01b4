// Kernels between the GEMMs of a Mamba-2 layer.
#include <algorithm>

#include "launch/views.h"

namespace rehearse {

namespace {

namespace k = kernels;

// Tokens of whole sequences. Context-parallel ranks divide their heads.
k::Tokens scanned_tokens(const Launch& launch) {
  const Shape& shape = launch.bound.shape;
  return {shape.batch, shape.seq * shape.cp, true, {}};
}

// One rank's part of the state space.
k::ScanShape scan_shape(const Launch& launch) {
  const StateSpace& space = *launch.bound.model.state_space;
  const std::int64_t ranks = launch.bound.shape.tp * launch.bound.shape.cp;
  k::ScanShape shape;
  shape.tokens = scanned_tokens(launch);
  shape.heads = space.heads / ranks;
  shape.groups = space.groups / ranks;
  shape.head_dim = space.head_dim;
  shape.state = space.state;
  return shape;
}

// The scanned heads of a vector that has a number for each head of a tensor-parallel rank.
k::Tensor of_heads(const Launch& launch, TensorId vector) {
  const std::int64_t heads = launch.elements(vector) / launch.bound.shape.cp;
  return launch.whole(vector).slice(launch.bound.context_rank * heads, heads);
}

// Neighbouring channels that are convolved here: their place in a token's row, and among the channels for
// which a tensor-parallel rank has weights. A row of the weight is a channel.
struct Channels {
  std::int64_t first = 0, first_weight = 0, count = 0;

  k::Tensor of_row(const k::Tensor& rows) const { return rows.slice(first, count); }
  k::Tensor weight(const Launch& launch, TensorId id) const {
    const std::int64_t width = launch.bound.model.state_space->convolution;
    return launch.part(id, first_weight * width, count, width);
  }
  k::Tensor bias(const Launch& launch, TensorId id) const {
    return launch.whole(id).slice(first_weight, count);
  }
};

std::vector<Channels> channels_of(const Launch& launch) {
  const std::int64_t ranks = launch.bound.shape.cp;
  std::vector<Channels> all;
  std::int64_t first = 0;
  for (const std::int64_t part : parts_of_channels(launch)) {
    const std::int64_t share = part / ranks;
    all.push_back({first / ranks, first + launch.bound.context_rank * share, share});
    first += part;
  }
  return ranks > 1 ? all : std::vector<Channels>{{0, 0, first}};
}

// Clears the sums of a microbatch before values are added.
k::Call cleared(k::Tensor sums) {
  k::Randomise zero;
  zero.output = sums;
  zero.spread = 0;
  return zero;
}

}  // namespace

std::vector<std::int64_t> parts_of_channels(const Launch& launch) {
  const StateSpace& space = *launch.bound.model.state_space;
  const std::int64_t tp = launch.bound.shape.tp, map = space.groups * space.state / tp;
  return {space.inner() / tp, map, map};
}

// Reads {input, weight, bias}.
Calls convolution_calls(const Launch& launch) {
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const k::Tokens tokens = scanned_tokens(launch);
  Calls calls;
  for (const Channels& channels : channels_of(launch))
    calls.push_back(k::Convolution{tokens, channels.of_row(launch.read(0, tokens.rows())),
                                   channels.weight(launch, reads[1]), channels.bias(launch, reads[2]),
                                   channels.of_row(launch.write(0, tokens.rows()))});
  return calls;
}

// Reads {output's gradient, input, weight, bias}; writes {input's gradient, sums for weight and bias}.
Calls convolution_backward_calls(const Launch& launch) {
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const k::Tokens tokens = scanned_tokens(launch);
  Calls calls = {cleared(launch.whole(writes[1])), cleared(launch.whole(writes[2]))};
  for (const Channels& channels : channels_of(launch)) {
    const k::Tensor gradient = channels.of_row(launch.read(0, tokens.rows())),
                    input = channels.of_row(launch.read(1, tokens.rows()));
    const k::Tensor weight = channels.weight(launch, reads[2]), bias = channels.bias(launch, reads[3]);
    calls.push_back(k::ConvolutionInputGradient{tokens, gradient, input, weight, bias,
                                                channels.of_row(launch.write(0, tokens.rows()))});
    calls.push_back(k::ConvolutionWeightGradient{tokens, gradient, input, weight, bias,
                                                 channels.weight(launch, writes[1]),
                                                 channels.bias(launch, writes[2])});
  }
  return calls;
}

// Reads {gate, convolved, steps, step bias, decay, skip}; writes {output, ungated, ...}.
Calls scan_calls(const Launch& launch) {
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const k::ScanShape shape = scan_shape(launch);
  const std::int64_t rows = shape.tokens.rows();
  return {k::Scan{shape, launch.read(0, rows), launch.read(1, rows), launch.read(2, rows),
                  of_heads(launch, reads[3]), of_heads(launch, reads[4]), of_heads(launch, reads[5]),
                  launch.write(1, rows), launch.write(0, rows)}};
}

// Reads {output's gradient, gate, convolved, steps, ungated, step bias, decay, skip}. Writes the gradients of
// {gate, convolved, steps}, sums for the three parameters, and each token's contribution to the decay's.
Calls scan_backward_calls(const Launch& launch) {
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const k::ScanShape shape = scan_shape(launch);
  const std::int64_t rows = shape.tokens.rows();
  const k::Tensor gradient = launch.read(0, rows), gate = launch.read(1, rows),
                  convolved = launch.read(2, rows);
  const k::Tensor of_steps = launch.write(2, rows), of_decays = launch.write(6, rows);
  const auto parameter = [&](std::size_t i) { return of_heads(launch, reads[i]); };
  const auto sum = [&](std::size_t i) { return of_heads(launch, writes[i]); };
  return {
      cleared(launch.whole(writes[3])), cleared(launch.whole(writes[4])), cleared(launch.whole(writes[5])),
      k::ScanInputGradient{shape, gradient, gate, convolved, launch.read(3, rows), parameter(5), parameter(6),
                           parameter(7), launch.read(4, rows), launch.write(0, rows), launch.write(1, rows),
                           of_steps, of_decays},
      k::ScanWeightGradient{shape, gradient, gate, convolved, of_steps, of_decays, sum(3), sum(4), sum(5)}};
}

// Context-parallel ranks exchange whole pairs of chunks, one from either end of the sequence (places of
// Plan's ranks). This puts chunks in the order of source ranks into the order of the sequence, or back.
Calls order_calls(const Launch& launch, bool by_sequence) {
  const Shape& shape = launch.bound.shape;
  const std::int64_t chunks = 2 * shape.cp, rows = shape.seq / 2 * shape.batch;
  Calls calls;
  for (std::size_t i = 0; i < launch.kernel.reads.size(); ++i) {
    const TensorId from = launch.kernel.reads[i], to = launch.kernel.writes[i];
    const std::int64_t width = launch.elements(from) / (chunks * rows);
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      const std::int64_t rank = std::min(chunk, chunks - 1 - chunk);
      const std::int64_t received = 2 * rank + (chunk == rank ? 0 : 1);
      const auto at = [&](TensorId id, bool in_sequence) {
        return launch.part(id, (in_sequence ? chunk : received) * rows * width, rows, width);
      };
      calls.push_back(k::Cast{at(from, !by_sequence), at(to, by_sequence)});
    }
  }
  return calls;
}

// Adds the sums of a microbatch: reads the sums, writes the gradients in the same order.
Calls added_sums_calls(const Launch& launch) {
  Calls calls;
  for (std::size_t i = 0; i < launch.kernel.reads.size(); ++i)
    calls.push_back(
        k::BiasGradient{launch.whole(launch.kernel.reads[i]), launch.whole(launch.kernel.writes[i])});
  return calls;
}

}  // namespace rehearse
