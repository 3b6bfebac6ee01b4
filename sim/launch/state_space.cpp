// What stands between the products of a Mamba-2 layer.
#include "launch/views.h"

namespace rehearse {

namespace {

namespace k = kernels;

// One rank's part of the state space.
k::ScanShape scan_shape(const Launch& launch) {
  const StateSpace& space = *launch.bound.model.state_space;
  const std::int64_t tp = launch.bound.shape.tp;
  k::ScanShape shape;
  shape.tokens = launch.tokens();
  shape.heads = space.heads / tp;
  shape.groups = space.groups / tp;
  shape.head_dim = space.head_dim;
  shape.state = space.state;
  return shape;
}

// A row of the convolution's weight is a channel.
k::Tensor channels(const Launch& launch, TensorId weight) {
  const std::int64_t width = launch.bound.model.state_space->convolution;
  return launch.part(weight, 0, launch.elements(weight) / width, width);
}

// To be added to, of a microbatch.
k::Call cleared(k::Tensor sums) {
  k::Randomise zero;
  zero.output = sums;
  zero.spread = 0;
  return zero;
}

}  // namespace

// Reads {input, weight, bias}.
Calls convolution_calls(const Launch& launch) {
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const k::Tokens tokens = launch.tokens();
  return {k::Convolution{tokens, launch.read(0, tokens.rows()), channels(launch, reads[1]),
                         launch.whole(reads[2]), launch.write(0, tokens.rows())}};
}

// Reads {output's gradient, input, weight, bias}; writes {input's gradient, sums for weight and bias}.
Calls convolution_backward_calls(const Launch& launch) {
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const k::Tokens tokens = launch.tokens();
  const k::Tensor gradient = launch.read(0, tokens.rows()), input = launch.read(1, tokens.rows());
  const k::Tensor weight = channels(launch, reads[2]), bias = launch.whole(reads[3]);
  const k::Tensor of_weight = channels(launch, writes[1]), of_bias = launch.whole(writes[2]);
  return {cleared(of_weight), cleared(of_bias),
          k::ConvolutionInputGradient{tokens, gradient, input, weight, bias, launch.write(0, tokens.rows())},
          k::ConvolutionWeightGradient{tokens, gradient, input, weight, bias, of_weight, of_bias}};
}

// Reads {gate, convolved, steps, step bias, decay, skip}; writes {output, ungated, ...}.
Calls scan_calls(const Launch& launch) {
  const std::vector<TensorId>& reads = launch.kernel.reads;
  const k::ScanShape shape = scan_shape(launch);
  const std::int64_t rows = shape.tokens.rows();
  return {k::Scan{shape, launch.read(0, rows), launch.read(1, rows), launch.read(2, rows),
                  launch.whole(reads[3]), launch.whole(reads[4]), launch.whole(reads[5]),
                  launch.write(1, rows), launch.write(0, rows)}};
}

// Reads {output's gradient, gate, convolved, steps, ungated, step bias, decay, skip}; writes the gradients of
// {gate, convolved, steps}, sums for the three parameters, and what each token adds to the decay's.
Calls scan_backward_calls(const Launch& launch) {
  const std::vector<TensorId>&reads = launch.kernel.reads, &writes = launch.kernel.writes;
  const k::ScanShape shape = scan_shape(launch);
  const std::int64_t rows = shape.tokens.rows();
  const k::Tensor gradient = launch.read(0, rows), gate = launch.read(1, rows),
                  convolved = launch.read(2, rows);
  const k::Tensor of_steps = launch.write(2, rows), of_decays = launch.write(6, rows);
  const k::Tensor bias_sum = launch.whole(writes[3]), decay_sum = launch.whole(writes[4]),
                  skip_sum = launch.whole(writes[5]);
  return {cleared(bias_sum), cleared(decay_sum), cleared(skip_sum),
          k::ScanInputGradient{shape, gradient, gate, convolved, launch.read(3, rows), launch.whole(reads[5]),
                               launch.whole(reads[6]), launch.whole(reads[7]), launch.read(4, rows),
                               launch.write(0, rows), launch.write(1, rows), of_steps, of_decays},
          k::ScanWeightGradient{shape, gradient, gate, convolved, of_steps, of_decays, bias_sum, decay_sum,
                                skip_sum}};
}

// Adds what a microbatch summed up: reads the sums, writes the gradients in the same order.
Calls added_sums_calls(const Launch& launch) {
  Calls calls;
  for (std::size_t i = 0; i < launch.kernel.reads.size(); ++i)
    calls.push_back(
        k::BiasGradient{launch.whole(launch.kernel.reads[i]), launch.whole(launch.kernel.writes[i])});
  return calls;
}

}  // namespace rehearse
