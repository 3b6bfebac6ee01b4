#include "schedule/schedule.h"

#include <fmt/core.h>

#include <limits>
#include <stdexcept>

namespace rehearse {

std::int32_t RankOps::add(Op op, std::span<const std::int32_t> waits) {
  const auto index = static_cast<std::int32_t>(ops_.size());
  op.first_wait = static_cast<std::uint32_t>(waits_.size());
  for (const std::int32_t wait : waits) {
    if (wait == -1) continue;
    if (wait < 0 || wait >= index)
      throw std::logic_error(fmt::format("op {} ({}) cannot wait for op {}: a wait names an earlier op",
                                         index, to_string(op), wait));
    waits_.push_back(wait);
  }
  const std::size_t count = waits_.size() - op.first_wait;
  if (count > std::numeric_limits<decltype(op.wait_count)>::max())
    throw std::logic_error(fmt::format("op {} ({}) has too many waits: {}", index, to_string(op), count));
  op.wait_count = static_cast<std::uint16_t>(count);
  ops_.push_back(op);
  return index;
}

}  // namespace rehearse
