#include <cmath>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

Case adam(Draw& draw) {
  const std::int64_t count = draw.width(1, 5000);
  const bool scaled = draw.coin(), copied = draw.coin(), short_gradient = draw.coin();
  const std::size_t gradient = draw.of(short_gradient ? draw.type : Type::fp32, 1, count);
  const std::size_t mean = draw.out(Type::fp32, 1, count), square = draw.of(Type::fp32, 1, count, 0.01F, 1);
  const std::size_t master = draw.out(Type::fp32, 1, count), weight = draw.out(1, count);
  const std::size_t scale = draw.of(Type::fp32, 1, 1, 0.1F, 1);
  draw.operands[square].written = true;
  return draw.finish([=](const Tensors& t) {
    Adam call{t[gradient],
              t[mean],
              t[square],
              t[master],
              copied ? t[weight] : Tensor(),
              scaled ? t[scale] : Tensor()};
    call.decay = 0.1F;
    call.step = 3;
    return call;
  });
}

// Gradients that overflowed.
Case adam_skipped(Draw& draw) {
  const std::int64_t count = draw.width(1, 5000);
  const std::size_t gradient =
      draw.given(Type::fp32, 1, count, std::vector<float>(static_cast<std::size_t>(count), INFINITY));
  const std::size_t mean = draw.out(Type::fp32, 1, count), square = draw.out(Type::fp32, 1, count),
                    master = draw.out(Type::fp32, 1, count), weight = draw.out(1, count);
  const std::size_t scale = draw.given(Type::fp32, 1, 1, {NAN});
  return draw.finish([=](const Tensors& t) {
    return Adam{t[gradient], t[mean], t[square], t[master], t[weight], t[scale]};
  });
}

// The weight in 16 bits alone, and its moments too.
Case adam_without_master(Draw& draw) {
  const std::int64_t count = draw.width(1, 5000);
  const std::size_t gradient = draw.of(1, count), mean = draw.out(1, count), weight = draw.out(1, count);
  const std::size_t square = draw.of(draw.type, 1, count, 0.01F, 1);
  draw.operands[square].written = true;
  return draw.finish(
      [=](const Tensors& t) { return Adam{t[gradient], t[mean], t[square], t[weight], {}, {}}; });
}

Case square_sum(Draw& draw) {
  const std::int64_t rows = draw.size(1, 60), columns = draw.width(1, 4000);
  const std::size_t in = draw.of(rows, columns), sum = draw.out(Type::fp32, 1, 1);
  return draw.finish(
      [=](const Tensors& t) {
        return SquareSum{t[in], t[sum]};
      },
      static_cast<double>(rows * columns));
}

Case clip_scale(Draw& draw) {
  const std::size_t sum = draw.of(Type::fp32, 1, 1, 0, 4), scale = draw.out(Type::fp32, 1, 1);
  return draw.finish([=](const Tensors& t) { return ClipScale{t[sum], t[scale], 1}; });
}

Case clip_scale_of_a_scaled_loss(Draw& draw) {
  const std::size_t sum = draw.of(Type::fp32, 1, 1, 0, 4e6F), scale = draw.out(Type::fp32, 1, 1);
  return draw.finish([=](const Tensors& t) { return ClipScale{t[sum], t[scale], 1, 1024}; });
}

}  // namespace

std::vector<Maker> optimizer_cases() {
  return {{"adam", adam},
          {"adam skipped", adam_skipped},
          {"adam without master", adam_without_master},
          {"square sum", square_sum},
          {"clip scale", clip_scale},
          {"clip scale of a scaled loss", clip_scale_of_a_scaled_loss}};
}

}  // namespace rehearse::kernels
