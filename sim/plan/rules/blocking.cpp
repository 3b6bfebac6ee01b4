#include "plan/rules/rules.h"

#include <fmt/core.h>

namespace rehearse {

void add_blocking_rules(const Plan& plan, std::vector<BrokenRule>& violations) {
  if (!plan.launch_blocking) return;
  const auto forbid = [&](bool overlaps, const char* what, const char* instead) {
    if (overlaps)
      violations.push_back({"", "launch_blocking", "nothing can overlap while the CPU waits for each kernel",
                            what, fmt::format("{}, or launch_blocking = off", instead)});
  };
  forbid(plan.overlap_grad_reduce, "overlap_grad_reduce is on", "overlap_grad_reduce = off");
  forbid(plan.overlap_p2p, "overlap_p2p is on", "overlap_p2p = off");
  forbid(plan.overlap_param_gather, "overlap_param_gather is on", "overlap_param_gather = off");
  forbid(plan.tp_comm_overlap, "tp_comm_overlap is on", "tp_comm_overlap = off");
  forbid(plan.overlap_experts, "overlap_experts is on", "overlap_experts = off");
  forbid(plan.tp > 1 && plan.tp_backward_overlap, "tp_backward_overlap is on", "tp_backward_overlap = off");
  forbid(plan.cp > 1 && plan.cp_exchange == ContextExchange::ring, "cp_comm_type is p2p",
         "cp_comm_type = allgather");
  forbid(plan.zero >= 2, "ZeRO-2 and ZeRO-3 overlap gradient reduction with backward", "zero = 1");
  forbid(plan.offload != Offload::none, "offload is on", "offload = none");
  forbid(plan.cuda_graph, "cuda_graph is on", "cuda_graph = off");
}

}  // namespace rehearse
