#include "schedule/passes.h"

#include "schedule/orders.h"

namespace rehearse {

Schedule complete_schedule(const Plan& plan, const GradientSync& sync) {
  return add_gradient_sync(add_transfers(make_order(plan), plan.overlap_p2p), sync);
}

}  // namespace rehearse
