#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

NormShape norm_shape(Draw& draw) {
  NormShape shape;
  shape.centred = draw.coin();
  shape.groups = draw.coin() ? draw.size(2, 5) : 1;
  return shape;
}

// Narrow vectors, ones that a thread has more of, and ones wider than a block keeps.
struct NormRows {
  NormRows(Draw& draw, const NormShape& shape, std::int64_t most)
      : wide(draw.size(0, 2)),
        rows(wide > 0 ? draw.size(1, 30) : draw.size(1, most)),
        width(wide == 2   ? draw.width(8300, 9000)
              : wide == 1 ? draw.width(2000, 5000)
                          : draw.width(8, 700)),
        columns(shape.groups * width) {}
  std::int64_t wide, rows, width, columns;
};

// A weight for every vector of a row, or one that they share.
std::int64_t weight_columns(Draw& draw, const NormShape& shape, std::int64_t width) {
  return draw.coin() ? width : shape.groups * width;
}

// From `type` to the working type.
Case norm_of(Draw& draw, Type type) {
  const NormShape shape = norm_shape(draw);
  const NormRows of(draw, shape, 150);
  const std::int64_t rows = of.rows, width = of.width, columns = of.columns;
  const std::int64_t own = weight_columns(draw, shape, width);
  const std::size_t in = draw.of(type, rows, columns), weight = draw.of(type, 1, own),
                    bias = draw.of(type, 1, own);
  const std::size_t out = draw.out(rows, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return Norm{shape, t[in], t[weight], shape.centred ? t[bias] : Tensor(), t[out]};
      },
      static_cast<double>(width));
}

Case norm(Draw& draw) {
  return norm_of(draw, draw.type);
}

Case norm_into_fp8(Draw& draw) {
  return norm_of(draw, draw.type == Type::fp32 ? Type::fp32 : Type::bf16);
}

Case norm_input_gradient(Draw& draw) {
  const NormShape shape = norm_shape(draw);
  const NormRows of(draw, shape, 150);
  const std::int64_t rows = of.rows, width = of.width, columns = of.columns;
  const std::size_t dy = draw.of(rows, columns), in = draw.of(rows, columns),
                    weight = draw.of(1, weight_columns(draw, shape, width));
  const std::size_t dx = draw.out(rows, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return NormInputGradient{shape, t[dy], t[in], t[weight], t[dx]};
      },
      static_cast<double>(width));
}

Case norm_weight_gradient(Draw& draw) {
  const NormShape shape = norm_shape(draw);
  const NormRows of(draw, shape, 600);
  const std::int64_t rows = of.rows, width = of.width, columns = of.columns;
  const std::size_t dy = draw.of(rows, columns), in = draw.of(rows, columns);
  const Type of_gradients = draw.coin() ? Type::fp32 : draw.type;
  const std::int64_t own = weight_columns(draw, shape, width);
  const std::size_t dweight = draw.out(of_gradients, 1, own), dbias = draw.out(of_gradients, 1, own);
  return draw.finish(
      [=](const Tensors& t) {
        return NormWeightGradient{shape, t[dy], t[in], t[dweight], shape.centred ? t[dbias] : Tensor()};
      },
      static_cast<double>(rows * shape.groups));
}

// Tokens that stand anywhere in a sequence, as with context parallelism, or one behind the other.
struct Placed {
  explicit Placed(Draw& draw)
      : tokens{draw.size(1, 3), draw.size(1, 90), draw.coin(), {}},
        anywhere(draw.coin()),
        places(draw.integers(Type::int32, 1, tokens.length, 300)) {}
  Tokens of(const Tensors& t) const {
    Tokens placed = tokens;
    if (anywhere) placed.positions = t[places];
    return placed;
  }

  Tokens tokens;
  bool anywhere;
  std::size_t places;
};

Case rotary(Draw& draw) {
  const Placed placed(draw);
  const Tokens& tokens = placed.tokens;
  const std::int64_t kv_heads = draw.size(1, 3), heads = kv_heads * draw.size(1, 3),
                     width = 2 * draw.width(1, 64);
  const bool back = draw.coin();
  const std::size_t q = draw.of(tokens.rows(), heads * width), k = draw.of(tokens.rows(), kv_heads * width);
  const std::size_t q_out = draw.out(tokens.rows(), heads * width),
                    k_out = draw.out(tokens.rows(), kv_heads * width);
  return draw.finish([=](const Tensors& t) {
    return Rotary{placed.of(t), heads, kv_heads, 10000, back, t[q], t[k], t[q_out], t[k_out]};
  });
}

// The key that heads share lies behind `latent` other columns.
struct Latent {
  explicit Latent(Draw& draw)
      : placed(draw),
        heads{placed.tokens,         draw.size(1, 5),   draw.width(1, 64),
              2 * draw.width(1, 32), draw.width(1, 64), 10000},
        latent(draw.width(1, 64)) {}
  LatentHeads of(const Tensors& t) const {
    LatentHeads its = heads;
    its.tokens = placed.of(t);
    return its;
  }
  Tensor shared(const Tensor& rows) const { return rows.slice(latent, heads.turned); }

  Placed placed;
  LatentHeads heads;
  std::int64_t latent;
};

Case latent_rotary(Draw& draw) {
  const Latent in(draw);
  const LatentHeads& heads = in.heads;
  const std::int64_t rows = heads.tokens.rows(), width = heads.heads * (heads.own + heads.turned);
  const std::size_t query = draw.of(rows, width), shared = draw.of(rows, in.latent + heads.turned),
                    pairs = draw.of(rows, heads.heads * (heads.own + heads.value));
  const std::size_t query_output = draw.out(rows, width), key_output = draw.out(rows, width),
                    value_output = draw.out(rows, heads.heads * heads.value);
  return draw.finish([=](const Tensors& t) {
    return LatentRotary{in.of(t),        t[query],      in.shared(t[shared]), t[pairs],
                        t[query_output], t[key_output], t[value_output]};
  });
}

Case latent_rotary_backward(Draw& draw) {
  const Latent in(draw);
  const LatentHeads& heads = in.heads;
  const std::int64_t rows = heads.tokens.rows(), width = heads.heads * (heads.own + heads.turned);
  const std::size_t of_query = draw.of(rows, width), of_key = draw.of(rows, width),
                    of_value = draw.of(rows, heads.heads * heads.value);
  const std::size_t query = draw.out(rows, width), shared = draw.out(rows, in.latent + heads.turned),
                    pairs = draw.out(rows, heads.heads * (heads.own + heads.value));
  return draw.finish(
      [=](const Tensors& t) {
        return LatentRotaryBackward{in.of(t), t[of_query],          t[of_key], t[of_value],
                                    t[query], in.shared(t[shared]), t[pairs]};
      },
      static_cast<double>(heads.heads));
}

ActivationKind any_activation(Draw& draw) {
  if (draw.coin()) return ActivationKind::swiglu;
  return draw.coin() ? ActivationKind::gelu : ActivationKind::squared_relu;
}

Case activation(Draw& draw) {
  const ActivationKind kind = any_activation(draw);
  const bool gated = kind == ActivationKind::swiglu, weighted = draw.coin();
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500);
  const std::size_t in = draw.of(draw.type, rows, (gated ? 2 : 1) * columns, -4, 4);
  const std::size_t weights = draw.of(Type::fp32, 1, rows, 0, 1), out = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) {
    return Activation{kind, t[in], weighted ? t[weights] : Tensor(), t[out]};
  });
}

Case activation_backward(Draw& draw) {
  const ActivationKind kind = any_activation(draw);
  const bool gated = kind == ActivationKind::swiglu, weighted = draw.coin();
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500);
  const std::size_t dy = draw.of(rows, columns),
                    in = draw.of(draw.type, rows, (gated ? 2 : 1) * columns, -4, 4);
  const std::size_t weights = draw.of(Type::fp32, 1, rows, 0, 1),
                    dx = draw.out(rows, (gated ? 2 : 1) * columns);
  const std::size_t dweights = draw.out(Type::fp32, 1, rows);
  return draw.finish(
      [=](const Tensors& t) {
        return ActivationBackward{
            kind, t[dy], t[in], weighted ? t[weights] : Tensor(), t[dx], weighted ? t[dweights] : Tensor()};
      },
      static_cast<double>(columns));
}

Case add(Draw& draw) {
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500), count = draw.size(1, 4);
  const bool biased = draw.coin();
  const std::size_t first = draw.of(rows, columns);
  for (int i = 1; i < 4; ++i) draw.of(rows, columns);
  const std::size_t bias = draw.of(1, columns), out = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) {
    Add call;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) call.inputs[i] = t[first + i];
    if (biased) call.bias = t[bias];
    call.output = t[out];
    return call;
  });
}

Case dropout(Draw& draw) {
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500);
  const bool biased = draw.coin(), adds = draw.coin();
  const std::size_t in = draw.of(rows, columns), bias = draw.of(1, columns),
                    residual = draw.of(rows, columns);
  const std::size_t out = draw.out(rows, columns), mask = draw.out(Type::uint8, rows, columns);
  return draw.finish([=](const Tensors& t) {
    return Dropout{
        t[in],          biased ? t[bias] : Tensor(), adds ? t[residual] : Tensor(), t[out], t[mask], 0.1F,
        0x1234567890ULL};
  });
}

Case dropout_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500);
  const std::size_t dy = draw.of(rows, columns), mask = draw.integers(Type::uint8, rows, columns, 2);
  const std::size_t dx = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) { return DropoutBackward{t[dy], t[mask], t[dx], 0.1F}; });
}

Case bias_gradient(Draw& draw) {
  const std::int64_t rows = draw.size(1, 900), columns = draw.width(1, 500);
  const Type of_sums = draw.coin() ? Type::fp32 : draw.type;
  const std::size_t dy = draw.of(rows, columns), sums = draw.out(of_sums, 1, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return BiasGradient{t[dy], t[sums]};
      },
      static_cast<double>(rows));
}

// Into fp8, from fp32 or from fp8; some of so many tiles that a GPU's blocks take several.
Case quantize(Draw& draw) {
  const bool large = draw.size(0, 5) == 0;
  const std::int64_t rows = large ? draw.size(1500, 1700) : draw.size(1, 150),
                     columns = large ? draw.size(1500, 1700) : draw.width(1, 500);
  const bool by_rows = draw.coin(), by_columns = draw.coin();
  const std::size_t in = draw.coin() ? draw.of(rows, columns) : draw.of(Type::fp32, rows, columns);
  const std::size_t scale = draw.of(Type::fp32, 1, 1, 0.5F, 2), maximum = draw.out(Type::fp32, 1, 1);
  const std::size_t out = draw.out(rows, columns), transposed = draw.out(columns, rows);
  return draw.finish([=](const Tensors& t) {
    return Quantize{t[in], t[scale], t[maximum], by_rows ? t[out] : Tensor(),
                    by_columns ? t[transposed] : Tensor()};
  });
}

Case cast(Draw& draw) {
  const std::int64_t rows = draw.size(1, 150), columns = draw.width(1, 500);
  const bool widens = draw.coin();
  const Type from = widens ? draw.type : Type::fp32, to = widens ? Type::fp32 : draw.type;
  const std::size_t in = draw.of(from, rows, columns), out = draw.out(to, rows, columns);
  return draw.finish([=](const Tensors& t) { return Cast{t[in], t[out]}; });
}

Case randomise(Draw& draw) {
  const std::size_t out = draw.out(draw.size(1, 150), draw.width(1, 500));
  const std::int64_t run = draw.size(1, 90);
  const Draws draws = {draw.size(0, 1000), run, run + draw.size(0, 90)};
  return draw.finish([=](const Tensors& t) { return Randomise{t[out], 0.5F, 2.0F, 77, draws}; });
}

}  // namespace

std::vector<Maker> pointwise_cases() {
  return {{"norm", norm},
          {"norm into fp8", norm_into_fp8, true},
          {"norm input gradient", norm_input_gradient},
          {"norm weight gradient", norm_weight_gradient},
          {"rotary", rotary},
          {"latent rotary", latent_rotary},
          {"latent rotary backward", latent_rotary_backward},
          {"activation", activation},
          {"activation backward", activation_backward},
          {"add", add},
          {"dropout", dropout},
          {"dropout backward", dropout_backward},
          {"bias gradient", bias_gradient},
          {"cast", cast},
          {"quantise", quantize, true},
          {"randomise", randomise},
          {"randomise fp8", randomise, true}};
}

}  // namespace rehearse::kernels
