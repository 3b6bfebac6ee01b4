#include "run/transfer_alone.h"

#include <algorithm>

namespace rehearse {

double Loads::alone_s(TaskId task) const {
  const ContendedOp* op = inside.of(task);
  if (op == nullptr) return fixed_s[task] + transfer_s[task];
  return fixed_s[task] + std::max(op->priced_s, transfer_s[task] - wait_s(task));
}

double transfer_alone_s(const Loads& loads, TaskId task, std::vector<double>& bytes) {
  const auto each_link = [&](auto&& visit) {
    for (const Flow& flow : loads.flows_of(task)) {
      for (const EndId end : {flow.ends.out, flow.ends.in}) {
        for (const LinkId link : loads.ends[static_cast<std::size_t>(end)])
          visit(static_cast<std::size_t>(link), static_cast<double>(flow.bytes));
      }
    }
  };
  double seconds = 0;
  each_link([&](std::size_t link, double more) { bytes[link] += more; });
  each_link(
      [&](std::size_t link, double) { seconds = std::max(seconds, bytes[link] / loads.capacity[link]); });
  each_link([&](std::size_t link, double) { bytes[link] = 0; });
  return seconds;
}

}  // namespace rehearse
