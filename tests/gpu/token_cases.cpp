#include <algorithm>
#include <numeric>

#include "gpu/cases.h"

namespace rehearse::kernels {

namespace {

Case embedding(Draw& draw) {
  const std::int64_t rows = draw.size(1, 300), columns = draw.width(1, 400), table_rows = draw.size(1, 90);
  const std::int64_t first = draw.size(0, 40);
  const std::size_t tokens = draw.integers(Type::int64, 1, rows, 130), table = draw.of(table_rows, columns);
  const std::size_t out = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) { return Embedding{t[tokens], t[table], t[out], first}; });
}

Case embedding_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 300), columns = draw.width(1, 400), table_rows = draw.size(1, 90);
  const std::int64_t first = draw.size(0, 40);
  const std::size_t dy = draw.of(rows, columns), tokens = draw.integers(Type::int64, 1, rows, 130);
  const std::size_t sums = draw.out(draw.coin() ? Type::fp32 : draw.type, table_rows, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return EmbeddingBackward{t[dy], t[tokens], t[sums], first};
      },
      static_cast<double>(rows));
}

Case positions(Draw& draw) {
  const Tokens tokens{draw.size(1, 4), draw.size(1, 90), draw.coin(), {}};
  const std::int64_t columns = draw.width(1, 400);
  const std::size_t in = draw.of(tokens.rows(), columns), table = draw.of(tokens.length, columns);
  const std::size_t out = draw.out(tokens.rows(), columns);
  return draw.finish([=](const Tensors& t) { return Positions{tokens, t[in], t[table], t[out]}; });
}

Case positions_backward(Draw& draw) {
  const Tokens tokens{draw.size(1, 4), draw.size(1, 90), draw.coin(), {}};
  const std::int64_t columns = draw.width(1, 400);
  const Type of_sums = draw.coin() ? Type::fp32 : draw.type;
  const std::size_t dy = draw.of(tokens.rows(), columns), sums = draw.out(of_sums, tokens.length, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return PositionsBackward{tokens, t[dy], t[sums]};
      },
      static_cast<double>(tokens.sequences));
}

Case loss_maximum(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t logits = draw.of(Type::fp32, rows, columns, -9, 9), out = draw.out(Type::fp32, 1, rows);
  return draw.finish([=](const Tensors& t) { return LossMaximum{t[logits], t[out]}; });
}

Case loss_shift(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t logits = draw.of(Type::fp32, rows, columns, -9, 9),
                    maximum = draw.of(Type::fp32, 1, rows, 8, 9);
  const std::size_t out = draw.out(Type::fp32, rows, columns);
  return draw.finish([=](const Tensors& t) { return LossShift{t[logits], t[maximum], t[out]}; });
}

Case loss_sum(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t e = draw.of(Type::fp32, rows, columns, 0, 1), out = draw.out(Type::fp32, 1, rows);
  return draw.finish([=](const Tensors& t) { return LossSum{t[e], t[out]}; }, static_cast<double>(columns));
}

Case loss_exponentials(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000), first = draw.size(0, 100);
  const std::size_t logits = draw.of(Type::fp32, rows, columns, -9, 9);
  const std::size_t labels = draw.integers(Type::int64, 1, rows, columns + 200);
  const std::size_t maximum = draw.of(Type::fp32, 1, rows, 8, 9), e = draw.out(Type::fp32, rows, columns);
  const std::size_t target = draw.out(Type::fp32, 1, rows), sum = draw.out(Type::fp32, 1, rows);
  const bool shifted = draw.coin();
  return draw.finish(
      [=](const Tensors& t) {
        const Tensor none;
        return LossExponentials{t[logits], t[labels], shifted ? none : t[maximum],
                                t[e],      t[target], shifted ? none : t[sum],
                                first};
      },
      static_cast<double>(columns));
}

Case loss(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t e = draw.of(Type::fp32, rows, columns, 0, 1), target = draw.of(Type::fp32, 1, rows);
  const std::size_t sum = draw.of(Type::fp32, 1, rows, 1, 900), p = draw.out(Type::fp32, rows, columns);
  const std::size_t out = draw.out(Type::fp32, 1, rows);
  return draw.finish([=](const Tensors& t) { return Loss{t[e], t[target], t[sum], t[p], t[out]}; });
}

Case loss_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000), first = draw.size(0, 100);
  const std::size_t p = draw.of(Type::fp32, rows, columns, 0, 1);
  const std::size_t labels = draw.integers(Type::int64, 1, rows, columns + 200),
                    out = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) { return LossBackward{t[p], t[labels], t[out], first, 0.25F}; });
}

Case log_softmax(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t logits = draw.of(Type::fp32, rows, columns, -9, 9),
                    labels = draw.integers(Type::int64, 1, rows, columns);
  const std::size_t out = draw.out(Type::fp32, rows, columns), loss = draw.out(Type::fp32, 1, rows);
  return draw.finish([=](const Tensors& t) { return LogSoftmax{t[logits], t[labels], t[out], t[loss]}; });
}

Case likelihood_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t labels = draw.integers(Type::int64, 1, rows, columns),
                    out = draw.out(Type::fp32, rows, columns);
  return draw.finish([=](const Tensors& t) { return LikelihoodBackward{t[labels], t[out], 0.25F}; });
}

Case log_softmax_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t g = draw.of(Type::fp32, rows, columns), p = draw.of(Type::fp32, rows, columns, -9, -1);
  const std::size_t out = draw.out(Type::fp32, rows, columns);
  return draw.finish(
      [=](const Tensors& t) {
        return LogSoftmaxBackward{t[g], t[p], t[out]};
      },
      static_cast<double>(columns));
}

Case token_loss(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t logits = draw.of(draw.type, rows, columns, -9, 9),
                    labels = draw.integers(Type::int64, 1, rows, columns);
  const std::size_t sum = draw.out(Type::fp32, 1, rows), loss = draw.out(Type::fp32, 1, rows);
  return draw.finish([=](const Tensors& t) { return TokenLoss{t[logits], t[labels], t[sum], t[loss]}; });
}

Case token_loss_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 80), columns = draw.width(1, 3000);
  const std::size_t logits = draw.of(draw.type, rows, columns, -9, 0),
                    labels = draw.integers(Type::int64, 1, rows, columns);
  const std::size_t sum = draw.of(Type::fp32, 1, rows, 0, 1), out = draw.out(rows, columns);
  return draw.finish([=](const Tensors& t) {
    return TokenLossBackward{t[logits], t[labels], t[sum], t[out], 0.25F};
  });
}

Case top_k(Draw& draw) {
  const std::int64_t rows = draw.size(1, 300), experts = draw.size(1, 200),
                     count = draw.size(1, std::min<std::int64_t>(8, experts));
  const bool biased = draw.coin();
  const std::size_t scores = draw.of(rows, experts), bias = draw.of(Type::fp32, 1, experts);
  const std::size_t weights = draw.out(Type::fp32, rows, count), choices = draw.out(Type::int32, rows, count);
  return draw.finish([=](const Tensors& t) {
    return TopK{t[scores], biased ? t[bias] : Tensor(), t[weights], t[choices]};
  });
}

Case top_k_in_turn(Draw& draw) {
  const std::int64_t sequences = draw.size(1, 5), length = draw.size(1, 60), experts = draw.size(1, 200),
                     count = draw.size(1, std::min<std::int64_t>(8, experts)), first = draw.size(0, 100);
  const bool position_major = draw.coin(), split = draw.coin();
  const std::size_t scores = draw.of(sequences * length, experts);
  const std::size_t positions = draw.integers(Type::int32, 1, length, 5000);
  const std::size_t weights = draw.out(Type::fp32, sequences * length, count),
                    choices = draw.out(Type::int32, sequences * length, count);
  return draw.finish([=](const Tensors& t) {
    const Tokens tokens{sequences, length, position_major, split ? t[positions] : Tensor()};
    return TopK{t[scores], {}, t[weights], t[choices], true, tokens, first};
  });
}

// Each row chooses neighbouring experts, all different.
std::vector<float> neighbours(Draw& draw, std::int64_t rows, std::int64_t experts, std::int64_t count) {
  std::vector<float> choices;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t first = draw.size(0, experts - 1);
    for (std::int64_t k = 0; k < count; ++k) choices.push_back(static_cast<float>((first + k) % experts));
  }
  return choices;
}

Case top_k_backward(Draw& draw) {
  const std::int64_t rows = draw.size(1, 300), experts = draw.size(8, 200), count = draw.size(1, 8);
  const std::size_t gradient = draw.of(Type::fp32, rows, count), scores = draw.of(rows, experts);
  const std::size_t choices = draw.given(Type::int32, rows, count, neighbours(draw, rows, experts, count));
  const std::size_t out = draw.out(rows, experts);
  return draw.finish([=](const Tensors& t) {
    return TopKBackward{t[gradient], t[scores], t[choices], t[out]};
  });
}

Case count_choices(Draw& draw) {
  const std::int64_t experts = draw.size(1, 200);
  const std::size_t choices = draw.integers(Type::int32, draw.size(1, 900), 4, experts);
  const std::size_t counts = draw.out(Type::fp32, 1, experts);
  return draw.finish([=](const Tensors& t) { return CountChoices{t[choices], t[counts]}; }, 900);
}

Case sort_choices(Draw& draw) {
  const std::int64_t experts = draw.size(1, 200), rows = draw.size(1, 900);
  const std::size_t choices = draw.integers(Type::int32, rows, 3, experts),
                    place = draw.out(Type::int32, 1, 3 * rows);
  return draw.finish([=](const Tensors& t) { return SortChoices{t[choices], t[place], experts}; });
}

Case transpose_blocks(Draw& draw) {
  const std::int64_t sources = draw.size(1, 9), experts = draw.size(1, 9), rows = draw.size(1, 90);
  const std::size_t place = draw.out(Type::int32, 1, sources * experts * rows);
  return draw.finish([=](const Tensors& t) { return TransposeBlocks{t[place], sources, experts, rows}; });
}

std::vector<float> permutation(Draw& draw, std::int64_t count) {
  std::vector<float> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0.0F);
  for (std::size_t i = places.size(); i > 1; --i)
    std::swap(places[i - 1],
              places[static_cast<std::size_t>(draw.size(0, static_cast<std::int64_t>(i) - 1))]);
  return places;
}

Case spread_rows(Draw& draw) {
  const std::int64_t rows = draw.size(1, 200), copies = draw.size(1, 4), columns = draw.width(1, 300),
                     all = rows * copies;
  const bool weighted = draw.coin();
  const std::size_t in = draw.of(rows, columns), weights = draw.of(Type::fp32, 1, all);
  const std::size_t place = draw.given(Type::int32, 1, all, permutation(draw, all)),
                    out = draw.out(all, columns);
  const std::size_t out_weights = draw.out(Type::fp32, 1, all);
  return draw.finish([=](const Tensors& t) {
    return SpreadRows{t[in],  weighted ? t[weights] : Tensor(),     t[place],
                      t[out], weighted ? t[out_weights] : Tensor(), copies};
  });
}

Case collect_rows(Draw& draw) {
  const std::int64_t rows = draw.size(1, 200), copies = draw.size(1, 4), columns = draw.width(1, 300),
                     all = rows * copies;
  const bool weighted = draw.coin();
  const std::size_t in = draw.of(all, columns), weights = draw.of(Type::fp32, 1, all);
  const std::size_t place = draw.given(Type::int32, 1, all, permutation(draw, all)),
                    out = draw.out(rows, columns);
  const std::size_t out_weights = draw.out(Type::fp32, 1, all);
  return draw.finish([=](const Tensors& t) {
    return CollectRows{t[in],  weighted ? t[weights] : Tensor(),     t[place],
                       t[out], weighted ? t[out_weights] : Tensor(), copies};
  });
}

}  // namespace

std::vector<Maker> token_cases() {
  return {{"embedding", embedding},
          {"embedding backward", embedding_backward},
          {"positions", positions},
          {"positions backward", positions_backward},
          {"loss maximum", loss_maximum},
          {"loss shift", loss_shift},
          {"loss sum", loss_sum},
          {"loss exponentials", loss_exponentials},
          {"loss", loss},
          {"loss backward", loss_backward},
          {"log softmax", log_softmax},
          {"likelihood backward", likelihood_backward},
          {"log softmax backward", log_softmax_backward},
          {"token loss", token_loss},
          {"token loss backward", token_loss_backward},
          {"top k", top_k},
          {"top k in turn", top_k_in_turn},
          {"top k backward", top_k_backward},
          {"count choices", count_choices},
          {"sort choices", sort_choices},
          {"transpose blocks", transpose_blocks},
          {"spread rows", spread_rows},
          {"collect rows", collect_rows}};
}

}  // namespace rehearse::kernels
