#include "cost/row_exchange.h"

#include <algorithm>
#include <limits>

#include "cost/links.h"

namespace rehearse {

namespace {

constexpr double kBf16 = 2, kWord = 4, kLong = 8;

// The share that comes from other places, when all `places` contribute equally.
double of_others(double places) {
  return (places - 1) / places;
}

// Rows of a channel that DeepEP's buffers hold for each rank of the node (get_dispatch_config and
// get_combine_config), and for each node.
double deepep_rows_of_rank(int members) {
  if (members <= 8) return 256;
  if (members <= 64) return 288;
  return members <= 128 ? 560 : 720;
}
constexpr double kDeepEpRowsOfNode = 128;
// Bytes beside a row: 128 choices, weights and scales each, and its origin.
constexpr double kDeepEpBeside = 128 * (8 + 4 + 4) + 8, kDeepEpFarBeside = kDeepEpBeside + 16;

double deepep_buffers(const GroupShape& group, int sms, double row_bytes) {
  const int channels = sms / 2, near = std::min(8, group.members), far = group.members / 8;
  const double of_node = channels * near * deepep_rows_of_rank(group.members) * (row_bytes + kDeepEpBeside);
  if (group.members <= 8) return of_node;
  return of_node + 2 * channels * far * kDeepEpRowsOfNode * (row_bytes + kDeepEpFarBeside);
}

double hybridep_buffers(const GroupShape& group, double experts, double rows, double hidden) {
  const double nodes = group.nodes, all = rows * group.members;
  const double weights = kWord * experts / nodes;  // of the experts of a node, for each row
  const double scales = kWord * hidden / 128;
  const double visiting = all * (kBf16 * hidden + weights + scales);
  if (group.nodes == 1) return visiting;
  const double own = rows * (kBf16 * hidden + kWord * experts + scales);
  const double passing = rows * (nodes - 1) * (3 * (kBf16 * hidden + weights) + scales);
  return visiting + own + passing;
}

// Bytes that travel with the rows. DeepEP sends numbers and weights of a token's choices (deep_ep/buffer.py).
// HybridEP sends a weight for each expert of the node (csrc/hybrid_ep/buffer/intranode.cu,
// expert_output_prob).
double weight_bytes(const Plan& plan, const Collective& exchange, const GroupShape& group) {
  if (exchange.weights == 0) return 0;
  if (plan.dispatcher == Dispatcher::deepep) return exchange.weights * (kLong + kWord);
  const auto of_node = static_cast<double>(exchange.fanout.experts) / group.nodes;
  return exchange.weights / static_cast<double>(exchange.fanout.chosen) * of_node * kWord;
}

}  // namespace

double exchange_far_bytes(const Plan& plan, const Collective& exchange, const GroupShape& group) {
  if (group.nodes < 2) return 0;
  const double share = copies(exchange.fanout, group.nodes) / copies(exchange.fanout, group.members);
  return (exchange.bytes + weight_bytes(plan, exchange, group)) * share * of_others(group.nodes);
}

int exchange_sms(const Plan& plan, const GroupShape& group) {
  if (plan.dispatcher_sms > 0) return plan.dispatcher_sms;
  if (plan.dispatcher == Dispatcher::deepep) return 20;
  return group.nodes == 1 ? 24 : 8;
}

CommunicationTime exchange_time(const Plan& plan, const Cluster& cluster, const Collective& exchange,
                                const GroupShape& group) {
  if (group.members <= 1) return {};
  const double most = plan.dispatcher == Dispatcher::deepep ? kDeepEpSmBytes * exchange_sms(plan, group)
                                                            : std::numeric_limits<double>::infinity();
  const double bytes = exchange.bytes + weight_bytes(plan, exchange, group);
  const double local = static_cast<double>(group.members) / group.nodes;
  const double link = std::min(most, kExchangeLink * cluster.node.gpu_link.bandwidth);
  const double near = local > 1 ? bytes * of_others(local) / link : 0;
  if (group.nodes == 1) return {cluster.node.gpu_link.latency, near};
  const double reached = std::min(kExchangeNic, cluster.node.nic_limits.efficiency);
  const double nic = nics_of_a_gpu(cluster.node) * cluster.node.nic.bandwidth * reached / group.per_nic;
  const double far = exchange_far_bytes(plan, exchange, group) / nic;
  return {cluster.node.nic.latency + cluster.node.gpu_link.latency, std::max(near, far)};
}

double local_move_time(const Gpu& gpu, Pointwise kind, double bytes, double looks) {
  const double look_s = kind == Pointwise::spread_rows ? kSpreadLook : kCollectLook;
  return bytes / (kLocalCopy * gpu.memory_bandwidth) + looks * look_s;
}

double exchange_buffers(const Plan& plan, const GroupShape& group, std::int64_t experts, double rows,
                        double hidden) {
  if (plan.dispatcher == Dispatcher::deepep)
    return deepep_buffers(group, exchange_sms(plan, group), kBf16 * hidden);
  return hybridep_buffers(group, static_cast<double>(experts), rows, hidden);
}

}  // namespace rehearse
