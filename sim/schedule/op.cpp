#include "schedule/op.h"

#include <fmt/core.h>

#include <array>

namespace rehearse {

namespace {

constexpr std::array kKindNames = {"F",
                                   "B",
                                   "I",
                                   "W",
                                   "SEND_F",
                                   "RECV_F",
                                   "SEND_B",
                                   "RECV_B",
                                   "OFFLOAD",
                                   "RELOAD",
                                   "UNSHARD",
                                   "RESHARD",
                                   "REDUCE_GRAD",
                                   "REDUCE_REPLICAS",
                                   "OFFLOAD_GRAD",
                                   "RELOAD_PARAM",
                                   "REDUCE_TIED",
                                   "STEP"};
constexpr std::array kStreamNames = {"compute",       "send_forward",  "recv_forward",
                                     "send_backward", "recv_backward", "gradient",
                                     "parameter",     "to_host",       "from_host"};
static_assert(kKindNames.size() == kOpKinds && kStreamNames.size() == kStreams);

}  // namespace

Op make_op(OpKind kind, int stage, int microbatch) {
  Op op;
  op.kind = kind;
  op.stream = stream_of(kind);
  op.stage = static_cast<std::uint16_t>(stage);
  op.microbatch = microbatch;
  return op;
}

std::string to_string(OpKind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

std::string to_string(Stream stream) {
  return kStreamNames.at(static_cast<std::size_t>(stream));
}

std::string to_string(const Op& op) {
  std::string text = fmt::format("{}{}", op.stage, to_string(op.kind));
  if (has_microbatch(op.kind)) text += std::to_string(op.microbatch);
  if (op.parts > 1) text += fmt::format(".{}", op.part);
  return text;
}

}  // namespace rehearse
