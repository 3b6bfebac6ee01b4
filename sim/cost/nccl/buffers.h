// How much of a GPU's memory do the buffers of a NCCL communicator take?
//
// A connection has a buffer for each protocol. Within a node (src/transport/p2p.cc) the receiver's GPU holds
// it; on Ampere the sender's GPU holds the part for Simple, which gives the same sum. Across nodes (net.cc)
// each side has its own. It is on the GPU where the NIC reads and writes GPU memory, and else on the host.
// Buffers depend on channels and neighbours, not on the bytes sent.
#pragma once

#include <set>

#include "cluster/cluster.h"
#include "cost/collectives.h"
#include "cost/nccl/double_tree.h"
#include "cost/nccl/graph.h"

namespace rehearse::nccl {

// NCCL 2.10 (PyTorch 1.10 and 1.11) connects rings and trees when a communicator is made. NCCL 2.30 connects
// an algorithm when it first runs (from 2.22 on, src/init.cc, NCCL_RUNTIME_CONNECT).
enum class Release : std::uint8_t { v2_10, v2_30 };

constexpr double kMebibyte = 1024.0 * 1024;

// Equal in both releases. Sizes are DEFAULT_*_BUFFSIZE of src/init.cc with the factors of include/device.h,
// and the flags beside them (include/comm.h, ncclSendMem and ncclRecvMem). They are rounded up
// (CUDA_IPC_MIN).
constexpr double kLlBytes = 8.0 * 512 * 8 * 16;      // lines a thread x threads x steps x bytes of a line
constexpr double kLl128Bytes = 120.0 * 640 * 8 * 8;  // elements a thread x threads x steps x bytes
constexpr double kSimpleBytes = 4 * kMebibyte;
constexpr double kFlagBytes = 4096;
constexpr double kGranularity = 2 * kMebibyte;

// A connection to send and one to receive: 2 + 10 MiB in a node, 10 + 10 MiB across nodes. Across nodes, the
// sender's buffer for LL is on the host.
double near_pair_bytes();
double far_pair_bytes();

// Members of a communicator that a GPU sends to and receives from point to point.
struct Peers {
  int near = 0;  // in its node
  int far = 0;
  bool any() const { return near + far > 0; }
  bool operator==(const Peers&) const = default;
};

// One communicator, on its GPU with the most buffer bytes. Keeps references to its arguments.
class Buffers {
 public:
  Buffers(const Constants& constants, const Cluster& cluster, const GroupShape& group, Release release);

  // Bytes of the algorithms that are connected.
  double collectives(const std::set<Algorithm>& algorithms) const;

  // Bytes of sends and receives. Each peer in the node has its own channels; peers across nodes share one
  // pool.
  double exchanges(const Peers& peers) const;

  int channels() const;  // of ring and tree
  int channels_of_a_peer() const;

  const Graph& graph() const { return graph_; }

 private:
  double far_bytes() const;
  double ring_and_tree(Shapes shapes) const;
  double nvls(bool with_tree) const;
  double binomial_trees(bool ring) const;
  int local() const;
  int links_to_a_peer() const;
  int far_channels() const;

  const Constants& constants_;
  const Cluster& cluster_;
  Release release_;
  Graph graph_;
};

}  // namespace rehearse::nccl
