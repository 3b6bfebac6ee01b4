#include "cost/slowest_gpu.h"

#include <boost/math/distributions/normal.hpp>

#include "cost/communicators.h"

namespace rehearse {

double expected_largest(int count) {
  if (count < 2) return 0;
  return boost::math::quantile(boost::math::normal(), (count - 0.375) / (count + 0.25));
}

double slowest_gpu(const Profile& profile, const Cluster& cluster, int ranks) {
  return 1 + profile.gpu_spread * expected_largest(are_parts_of_one_gpu(cluster) ? 1 : ranks);
}

}  // namespace rehearse
