#include "memory/activation_events.h"

namespace rehearse {

std::vector<std::size_t> backwards_beside(const RankOps& ops) {
  std::vector<std::size_t> beside;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == OpKind::offload) return {};
    if (ops[i].kind != OpKind::forward || ops[i].beside < 0 || ops[i].part > 0) continue;
    std::size_t second = i + 1;
    while (ops[second].kind != OpKind::backward) ++second;
    beside.resize(ops.size(), 0);
    beside[i] = second;
  }
  return beside;
}

}  // namespace rehearse
