// Exchanges of context-parallel ranks about one sequence.
#include <vector>

#include "execute/batch.h"
#include "execute/rank.h"

namespace rehearse {

namespace {

using View = kernels::Tensor;

View flat(const View& tensor) {
  return {tensor.data, tensor.type, 1, tensor.elements()};
}

View part_of(const View& whole, std::int64_t first, std::int64_t height, std::int64_t width) {
  return {whole.slice(first, 0).data, whole.type, height, width};
}

void copy(kernels::Stream& stream, const View& from, const View& to) {
  stream.launch(kernels::Cast{from, to});
}

// Columns of an exchanged tensor, in parts whose heads are divided separately.
std::vector<std::int64_t> parts_of(const Launch& launch, Slot slot, std::int64_t columns) {
  return slot == Slot::channels ? parts_of_channels(launch) : std::vector{columns};
}

}  // namespace

// Memory of the compute stream while it is in scope. Work that is launched later may reuse it.
struct Rank::Staged {
  Memory memory;
  View all;
};

Rank::Staged Rank::stage(std::int64_t elements) {
  Staged staged{pool_.take(static_cast<std::size_t>(elements) * kernels::bytes_of(types_.value)), {}};
  staged.all = {staged.memory.get(), types_.value, 1, elements};
  return staged;
}

void Rank::make_positions() {
  std::vector<std::int32_t> positions;
  for (int rank = 0; rank < training_.plan.cp; ++rank)
    for (const std::int64_t position : places_of_rank(training_.plan, rank))
      positions.push_back(static_cast<std::int32_t>(position));
  positions_ = kernels::Buffer(device_, positions.size() * sizeof(std::int32_t));
  kernels::Stream& stream = *streams_[static_cast<std::size_t>(Stream::compute)];
  stream.copy(positions_.data(), positions.data(), positions_.bytes());
  stream.synchronize();  // the copy reads `positions`
}

void Rank::run_context_collective(const Launch& launch, const Collective& collective,
                                  kernels::Stream& stream) {
  switch (collective.op) {
    case CollectiveOp::all_gather:
      return gather_rows(launch, stream);
    case CollectiveOp::reduce_scatter:
      return scatter_rows(launch, stream);
    case CollectiveOp::all_to_all:
      return swap_heads(launch, collective.exchange == Exchange::rows_for_heads, stream);
    case CollectiveOp::send_receive:
      return;  // a ring's, which run_ring() does step by step
    default:
      throw kernels::DeviceError("the collective " + launch.kernel.name + " is not executed yet");
  }
}

// Gathers each tensor's rows of all ranks, one tensor after the other, into one tensor.
void Rank::gather_rows(const Launch& launch, kernels::Stream& stream) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const View whole = launch.whole(launch.kernel.writes[0]);
  std::int64_t first = 0;
  for (const TensorId id : launch.kernel.reads) {
    const Staged own = stage(launch.elements(id));
    copy(stream, launch.rows(id, rows), part_of(own.all, 0, rows, own.all.columns / rows));
    const std::int64_t gathered = own.all.columns * launch.bound.shape.cp;
    groups_.context->all_gather(stream, own.all, part_of(whole, first, 1, gathered));
    first += gathered;
  }
}

// The inverse of gather_rows(): returns each rank's rows of the sum.
void Rank::scatter_rows(const Launch& launch, kernels::Stream& stream) {
  const std::int64_t rows = launch.bound.shape.tokens;
  const View partial = launch.whole(launch.kernel.reads[0]);
  std::int64_t first = 0;
  for (const TensorId id : launch.kernel.writes) {
    const Staged own = stage(launch.elements(id));
    const std::int64_t gathered = own.all.columns * launch.bound.shape.cp;
    groups_.context->reduce_scatter(stream, part_of(partial, first, 1, gathered), own.all);
    copy(stream, part_of(own.all, 0, rows, own.all.columns / rows), launch.rows(id, rows));
    first += gathered;
  }
}

// From a rank's rows of all heads to all rows of its heads, or back. Heads are columns. During the exchange,
// the data for each rank is contiguous.
void Rank::swap_heads(const Launch& launch, bool to_heads, kernels::Stream& stream) {
  const std::int64_t rows = launch.bound.shape.tokens, ranks = launch.bound.shape.cp;
  for (std::size_t i = 0; i < launch.kernel.reads.size(); ++i) {
    const TensorId from = launch.kernel.reads[i], to = launch.kernel.writes[i];
    const View of_heads = launch.rows(to_heads ? to : from, rows * ranks);
    const View of_rows = launch.rows(to_heads ? from : to, rows);
    if (!of_heads.contiguous())
      reject(*op_, launch.tensor(to_heads ? to : from).name + " has no separate buffer");
    const Staged staged = stage(launch.elements(from));
    const std::int64_t width = of_rows.columns / ranks;
    if (!to_heads) groups_.context->all_to_all(stream, flat(of_heads), staged.all);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const View block = part_of(staged.all, rank * rows * width, rows, width);
      std::int64_t first = 0;
      for (const std::int64_t part : parts_of(launch, launch.kernel.reads.slot(i), of_rows.columns)) {
        const std::int64_t share = part / ranks;
        const View columns = of_rows.slice(first + rank * share, share),
                   own = block.slice(first / ranks, share);
        copy(stream, to_heads ? columns : own, to_heads ? own : columns);
        first += part;
      }
    }
    if (to_heads) groups_.context->all_to_all(stream, staged.all, flat(of_heads));
  }
}

// Attention step by step. After each step, keys and values go to the next rank of the ring. The gradients of
// keys and values from a backward step return to the rank that owns these.
void Rank::run_ring(const Launch& launch, const Attention& attention, kernels::Stream& stream) {
  const View leaving = launch.whole_read(Slot::keys_and_values);
  const View arrived = part_of(launch.whole_read(Slot::arriving), 0, 1, leaving.columns);
  kernels::Communicator& ring = *groups_.context;
  const int next = (ring.rank() + 1) % ring.size(), last = (ring.rank() + ring.size() - 1) % ring.size();
  const std::vector<kernels::Call> calls = calls_of(launch.bound, launch.kernel);
  for (std::size_t step = 0; step < calls.size(); ++step) {
    if (step > 0) ring.send_receive(stream, leaving, next, arrived, last);
    if (step > 0 && step + 1 < calls.size()) copy(stream, arrived, leaving);
    stream.launch(calls[step]);
    if (step > 0 && attention.backward) return_gradients(launch, step, stream);
  }
}

// Returns the gradients of key and value of step `step`.
void Rank::return_gradients(const Launch& launch, std::size_t step, kernels::Stream& stream) {
  const View made = launch.whole(launch.kernel.writes.all_in(Slot::keys_and_values).at(step));
  const int back = static_cast<int>(step);
  const Staged returned = stage(made.columns);
  kernels::Communicator& ring = *groups_.context;
  ring.send_receive(stream, made, (ring.rank() + ring.size() - back) % ring.size(), returned.all,
                    (ring.rank() + back) % ring.size());
  copy(stream, returned.all, made);
}

}  // namespace rehearse
