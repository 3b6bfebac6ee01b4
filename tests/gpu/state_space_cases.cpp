#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

Tokens some_tokens(Draw& draw, std::int64_t most = 60) {
  return {draw.size(1, 3), draw.size(1, most), draw.coin(), {}};
}

// Operands of a convolution, whose input is a slice of wider rows.
struct Convolved {
  explicit Convolved(Draw& draw)
      : tokens(some_tokens(draw, draw.coin() ? 20 : 300)),
        channels(draw.width(1, 300)),
        before(draw.size(0, 20)),
        input(draw.of(tokens.rows(), before + channels)),
        weight(draw.of(channels, draw.size(1, 6))),
        bias(draw.of(1, channels)),
        biased(draw.coin()) {}
  Tensor of_input(const Tensors& t) const { return t[input].slice(before, channels); }
  Tensor of_bias(const Tensors& t) const { return biased ? t[bias] : Tensor(); }

  Tokens tokens;
  std::int64_t channels, before;
  std::size_t input, weight, bias;
  bool biased;
};

Case convolution(Draw& draw) {
  const Convolved in(draw);
  const std::size_t out = draw.out(in.tokens.rows(), in.channels);
  return draw.finish([=](const Tensors& t) {
    return Convolution{in.tokens, in.of_input(t), t[in.weight], in.of_bias(t), t[out]};
  });
}

Case convolution_input_gradient(Draw& draw) {
  const Convolved in(draw);
  const std::size_t dout = draw.of(in.tokens.rows(), in.channels);
  const std::size_t din = draw.out(in.tokens.rows(), in.before + in.channels);
  return draw.finish([=](const Tensors& t) {
    return ConvolutionInputGradient{in.tokens,    t[dout],       in.of_input(t),
                                    t[in.weight], in.of_bias(t), t[din].slice(in.before, in.channels)};
  });
}

Case convolution_weight_gradient(Draw& draw) {
  const Convolved in(draw);
  const Type of_gradients = draw.coin() ? Type::fp32 : draw.type;
  const std::size_t dout = draw.of(in.tokens.rows(), in.channels);
  const std::size_t dweight = draw.out(of_gradients, in.channels, draw.operands[in.weight].columns),
                    dbias = draw.out(of_gradients, 1, in.channels);
  return draw.finish(
      [=](const Tensors& t) {
        return ConvolutionWeightGradient{in.tokens,
                                         t[dout],
                                         in.of_input(t),
                                         t[in.weight],
                                         in.of_bias(t),
                                         t[dweight],
                                         in.biased ? t[dbias] : Tensor()};
      },
      static_cast<double>(in.tokens.rows()));
}

ScanShape some_scan(Draw& draw) {
  ScanShape shape;
  shape.tokens = some_tokens(draw);
  shape.groups = draw.size(1, 3);
  shape.heads = shape.groups * draw.size(1, 3);
  shape.head_dim = draw.size(0, 4) == 0 ? draw.width(65, 128) : draw.width(1, 64);
  shape.state = draw.size(0, 4) == 0 ? draw.width(129, 256) : draw.width(1, 128);
  return shape;
}

// Inputs of a scan; gate and step are slices of a GEMM's output.
struct Scanned {
  explicit Scanned(Draw& draw)
      : shape(some_scan(draw)),
        rows(shape.tokens.rows()),
        projected(draw.of(rows, shape.inner() + shape.heads)),
        convolved(draw.of(rows, shape.inner() + 2 * shape.groups * shape.state)) {
    const Type of_numbers = draw.coin() ? Type::fp32 : draw.type;
    step_bias = draw.of(of_numbers, 1, shape.heads, -4, 0);
    decay_log = draw.of(of_numbers, 1, shape.heads, -1, 2);
    skip = draw.of(of_numbers, 1, shape.heads);
  }
  Tensor gate(const Tensor& of_projected) const { return of_projected.slice(0, shape.inner()); }
  Tensor step(const Tensor& of_projected) const { return of_projected.slice(shape.inner(), shape.heads); }

  ScanShape shape;
  std::int64_t rows;
  std::size_t projected, convolved, step_bias = 0, decay_log = 0, skip = 0;
};

Case scan(Draw& draw) {
  const Scanned in(draw);
  const std::size_t ungated = draw.out(in.rows, in.shape.inner()),
                    output = draw.out(in.rows, in.shape.inner());
  return draw.finish(
      [=](const Tensors& t) {
        const Tensor& projected = t[in.projected];
        return Scan{in.shape,        in.gate(projected), t[in.convolved], in.step(projected), t[in.step_bias],
                    t[in.decay_log], t[in.skip],         t[ungated],      t[output]};
      },
      static_cast<double>(in.shape.tokens.length * in.shape.state));
}

Case scan_input_gradient(Draw& draw) {
  const Scanned in(draw);
  const std::size_t dout = draw.of(in.rows, in.shape.inner()), ungated = draw.of(in.rows, in.shape.inner());
  const std::size_t dprojected = draw.out(in.rows, in.shape.inner() + in.shape.heads),
                    dconvolved = draw.out(in.rows, draw.operands[in.convolved].columns),
                    ddecay = draw.out(Type::fp32, in.rows, in.shape.heads);
  return draw.finish(
      [=](const Tensors& t) {
        const Tensor &projected = t[in.projected], &gradient = t[dprojected];
        return ScanInputGradient{in.shape,           t[dout],           in.gate(projected), t[in.convolved],
                                 in.step(projected), t[in.step_bias],   t[in.decay_log],    t[in.skip],
                                 t[ungated],         in.gate(gradient), t[dconvolved],      in.step(gradient),
                                 t[ddecay]};
      },
      static_cast<double>(in.shape.tokens.length * in.shape.state * in.shape.head_dim));
}

Case scan_weight_gradient(Draw& draw) {
  const Scanned in(draw);
  const Type of_gradients = draw.coin() ? Type::fp32 : draw.type;
  const std::size_t dout = draw.of(in.rows, in.shape.inner()), dstep = draw.of(in.rows, in.shape.heads),
                    ddecay = draw.of(Type::fp32, in.rows, in.shape.heads);
  const std::size_t dbias = draw.out(of_gradients, 1, in.shape.heads),
                    dlog = draw.out(of_gradients, 1, in.shape.heads),
                    dskip = draw.out(of_gradients, 1, in.shape.heads);
  return draw.finish(
      [=](const Tensors& t) {
        return ScanWeightGradient{in.shape,        t[dout],  in.gate(t[in.projected]),
                                  t[in.convolved], t[dstep], t[ddecay],
                                  t[dbias],        t[dlog],  t[dskip]};
      },
      static_cast<double>(in.rows * in.shape.head_dim));
}

}  // namespace

std::vector<Maker> state_space_cases() {
  return {{"convolution", convolution},
          {"convolution input gradient", convolution_input_gradient},
          {"convolution weight gradient", convolution_weight_gradient},
          {"scan", scan},
          {"scan input gradient", scan_input_gradient},
          {"scan weight gradient", scan_weight_gradient}};
}

}  // namespace rehearse::kernels
