#include "execute/batch.h"

#include "kernels/philox.h"

namespace rehearse {

Batch make_batch(const Plan& plan, std::int64_t vocab, std::uint64_t seed, std::int64_t step, int replica,
                 int microbatch) {
  constexpr std::int64_t kChoices = 4, kFactor = 5, kOffset = 17;
  const std::int64_t sequences = plan.micro_batch, places = plan.seq;
  Batch batch;
  batch.tokens.resize(static_cast<std::size_t>(sequences * places));
  batch.labels.resize(batch.tokens.size());
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t sequence = (std::int64_t{microbatch} * plan.dp + replica) * sequences + s;
    const std::int64_t first = (step * plan.global_batch + sequence) * (places + 1);
    const auto draw = [&](std::int64_t place) {
      return static_cast<std::int64_t>(kernels::philox(seed, static_cast<std::uint64_t>(first + place)));
    };
    std::int64_t token = draw(0) % vocab;
    for (std::int64_t place = 0; place < places; ++place) {
      const auto row = static_cast<std::size_t>(place * sequences + s);
      batch.tokens[row] = token;
      token = (kFactor * token + kOffset + draw(place + 1) % kChoices) % vocab;
      batch.labels[row] = token;
    }
  }
  return batch;
}

}  // namespace rehearse
