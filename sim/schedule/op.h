// Which step does a rank take: kind, stage and microbatch, stream, and the earlier steps of the same rank
// that it waits for?
#pragma once

#include <cstdint>
#include <string>

#include "plan/op_kind.h"

namespace rehearse {

struct Op {
  OpKind kind = OpKind::forward;
  Stream stream = Stream::compute;
  std::uint16_t stage = 0;      // global stage index; of the own side for messages
  std::int32_t microbatch = 0;  // 0 for reductions and STEP
  std::uint16_t part = 0;  // an op may be split into equal parts, so that others can wait for one of them
  std::uint16_t parts = 1;
  std::uint16_t wait_count = 0;  // waits: RankOps::waits(op)
  std::int16_t beside = -1;  // F or B: stage of the B or F whose kernels take turns with its own; -1: none
  std::uint32_t first_wait = 0;

  bool operator==(const Op&) const = default;
};

inline int unit_of(const Op& op) {
  return unit_of(op.kind, op.part, op.parts);
}

// An unsplit op on its kind's stream.
Op make_op(OpKind kind, int stage, int microbatch = 0);

std::string to_string(OpKind kind);
std::string to_string(Stream stream);
std::string to_string(
    const Op& op);  // "2F0", "1SEND_B3", "0REDUCE_GRAD"; part 2 of several: "0REDUCE_GRAD.2", "1B7.2"

}  // namespace rehearse
