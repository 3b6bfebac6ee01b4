#include "calibrate/timing/operands.h"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr double kMaxSets = 2048;
constexpr std::uint64_t kSeed = 20260101;

// Rows of the table that token ids index.
std::int64_t rows_of_table(const KernelJob& job, const Jobs& jobs) {
  const Jobs::Shaped& shaped = jobs.plans[job.plan];
  return shape_on_one_rank(shaped.model, shaped.plan).vocab;
}

bool is_of_choices(const Kernel& kernel, TensorId id) {
  return kernel.reads.in(Slot::choices) == id || kernel.writes.in(Slot::choices) == id;
}

// Exponentials, their sums, squares and scales.
bool is_positive(const Kernel& kernel, TensorId id) {
  const KernelTensors& reads = kernel.reads;
  if (is_one_of(kernel, Pointwise::adam)) return reads[2] == id;
  if (is_one_of(kernel, Pointwise::loss, Pointwise::loss_sum) && reads[0] == id) return true;
  return reads.in(Slot::exponential_sum) == id || reads.in(Slot::scale) == id;
}

bool is_integer(kernels::Type type) {
  return type == kernels::Type::int64 || type == kernels::Type::uint8;
}

// Numbers spread over 0 .. bound in an order that no prefetcher predicts.
template <typename T>
std::vector<T> scattered(std::size_t count, std::int64_t bound) {
  std::vector<T> values(count);
  std::uint64_t state = kSeed;
  for (T& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
    value = static_cast<T>((state >> 33) % static_cast<std::uint64_t>(bound));
  }
  return values;
}

}  // namespace

Operands::Operands(kernels::Device& device, kernels::Stream& stream, const Jobs& jobs, const KernelJob& job,
                   double least_bytes)
    : jobs_(jobs), job_(job), places_(place_tensors(jobs.blocks[job.block])) {
  const Block& block = jobs.blocks[job.block];
  for (const auto* ids : {&job.kernel.reads, &job.kernel.writes}) {
    for (const TensorId id : *ids) {
      const TensorPlace& place = places_[static_cast<std::size_t>(id)];
      if (!offset_.try_emplace(place.matrix, set_bytes_).second) continue;
      set_bytes_ += (matrix_bytes(block, place) + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  const double wanted = std::ceil(least_bytes / static_cast<double>(std::max<std::size_t>(1, set_bytes_)));
  sets_ = static_cast<std::size_t>(std::clamp(wanted, 1.0, kMaxSets));
  memory_ = kernels::Buffer(device, sets_ * set_bytes_);
  if (sorts_rows(job.kernel)) {
    double rows = 0;
    for (const TensorId id : job.kernel.reads)
      rows = std::max(rows, block.tensors[static_cast<std::size_t>(id)].elements);
    scratch_ = kernels::Buffer(device, static_cast<std::size_t>(rows) * sizeof(std::int32_t));
  }
  const auto* attention = std::get_if<Attention>(&job.kernel.what);
  if (attention != nullptr && attention->causal && attention->keys > attention->query) {
    // With a striped split, every query sees half of the keys on average.
    std::vector<std::int32_t> positions;
    for (std::int64_t i = 0; i < attention->query; ++i)
      positions.push_back(static_cast<std::int32_t>(i * attention->keys / attention->query));
    positions_ = kernels::Buffer(device, positions.size() * sizeof(std::int32_t));
    stream.copy(positions_.data(), positions.data(), positions_.bytes());
    stream.synchronize();
  }
  fill(stream);
}

std::byte* Operands::address(std::size_t set, TensorId matrix) const {
  return static_cast<std::byte*>(memory_.data()) + set * set_bytes_ + offset_.at(matrix);
}

void Operands::fill_integers(kernels::Stream& stream, TensorId id) {
  const Block& block = jobs_.blocks[job_.block];
  const Tensor& tensor = block.tensors[static_cast<std::size_t>(id)];
  const auto count = static_cast<std::size_t>(tensor.elements);
  const auto copy = [&](const auto& values) {
    stream.copy(address(0, id), values.data(), values.size() * sizeof(values[0]));
    stream.synchronize();
  };
  if (is_of_choices(job_.kernel, id)) {
    // Every expert is chosen equally often, by tokens in turn.
    std::vector<std::int32_t> choices(count);
    const std::int64_t experts = jobs_.plans[job_.plan].model.experts->count;
    for (std::size_t i = 0; i < count; ++i)
      choices[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(experts));
    return copy(choices);
  }
  if (tensor.element_bytes == 8) return copy(scattered<std::int64_t>(count, rows_of_table(job_, jobs_)));
  copy(scattered<std::uint8_t>(count, 2));
}

// Random numbers distributed like weights and activations. Tensors that are never negative in training are
// filled elsewhere.
void Operands::fill(kernels::Stream& stream) {
  const Block& block = jobs_.blocks[job_.block];
  const Precision precision = jobs_.plans[job_.plan].plan.precision;
  for (const auto& [matrix, offset] : offset_) {
    const kernels::Type type = type_in(block, job_.kernel, matrix, precision);
    if (is_integer(type) || is_of_choices(job_.kernel, matrix)) {
      fill_integers(stream, matrix);
      continue;
    }
    const TensorPlace& place = places_[static_cast<std::size_t>(matrix)];
    const bool positive = is_positive(job_.kernel, matrix);
    const std::size_t bytes = matrix_bytes(block, place);
    const kernels::Tensor view(address(0, matrix), type, place.rows,
                               static_cast<std::int64_t>(bytes / kernels::bytes_of(type)) / place.rows);
    stream.launch(kernels::Randomise{view, positive ? 1.0F : 0.0F, positive ? 0.5F : 1.0F,
                                     kSeed + static_cast<std::uint64_t>(matrix)});
  }
  for (std::size_t set = 1; set < sets_; ++set) {
    stream.copy(static_cast<std::byte*>(memory_.data()) + set * set_bytes_, memory_.data(), set_bytes_);
  }
  stream.synchronize();
}

std::vector<kernels::Call> Operands::calls(std::size_t set) const {
  const Jobs::Shaped& shaped = jobs_.plans[job_.plan];
  BoundBlock bound = bind_block(jobs_.blocks[job_.block], shaped.model, shaped.plan,
                                [this, set](TensorId matrix) { return address(set, matrix); });
  bound.rows_of_choices = {scratch_.data(), kernels::Type::int32, 1,
                           static_cast<std::int64_t>(scratch_.bytes() / sizeof(std::int32_t))};
  std::vector<kernels::Call> calls = calls_of(bound, job_.kernel);
  if (chunks_of(job_.kernel) > 1) calls.resize(1);
  for (kernels::Call& call : calls) {
    const kernels::Tensor positions(positions_.data(), kernels::Type::int32, 1,
                                    static_cast<std::int64_t>(positions_.bytes() / sizeof(std::int32_t)));
    if (auto* forward = std::get_if<kernels::AttentionForward>(&call))
      forward->shape.queries.positions = positions;
    if (auto* backward = std::get_if<kernels::AttentionBackward>(&call))
      backward->shape.queries.positions = positions;
  }
  return calls;
}

}  // namespace rehearse
