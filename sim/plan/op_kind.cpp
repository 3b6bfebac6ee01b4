#include "plan/op_kind.h"

namespace rehearse {

Stream stream_of(OpKind kind) {
  switch (kind) {
    case OpKind::send_forward:
      return Stream::send_forward;
    case OpKind::recv_forward:
      return Stream::recv_forward;
    case OpKind::send_backward:
      return Stream::send_backward;
    case OpKind::recv_backward:
      return Stream::recv_backward;
    case OpKind::unshard:
    case OpKind::reshard:
      return Stream::parameter;
    case OpKind::offload:
    case OpKind::offload_grad:
      return Stream::to_host;
    case OpKind::reload:
    case OpKind::reload_param:
      return Stream::from_host;
    case OpKind::reduce_grad:
    case OpKind::reduce_replicas:
    case OpKind::reduce_tied:
      return Stream::gradient;
    default:
      return Stream::compute;
  }
}

}  // namespace rehearse
