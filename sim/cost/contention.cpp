#include "cost/contention.h"

#include <algorithm>

#include "cost/nccl/model.h"

namespace rehearse {

double share_taken(const Profile& profile, const Cluster& cluster, const GroupShape& group) {
  if (!profile.collectives || group.members < 2) return 0;
  return share_taken(cluster.gpu,
                     nccl::blocks(nccl::graph_of(profile.collectives->constants, cluster, group)));
}

double share_taken(const Gpu& gpu, double blocks) {
  return gpu.multiprocessors > 0 ? std::min(kMostTaken, blocks / gpu.multiprocessors) : 0;
}

}  // namespace rehearse
