// Which collectives and messages can the ranks of a group run?
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace rehearse::kernels {

enum class Reduction : std::uint8_t { sum, maximum };

// One rank's communicator of a group. Every member calls the same operations in the same order, each on one
// stream of its device. Calls return at once; operations run in the order of the stream. Tensors are
// contiguous. `from` and `to` may be the same memory where they are equally long. The stream's synchronize()
// throws failures.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // in the group
  virtual int size() const = 0;

  virtual void all_reduce(Stream& stream, const Tensor& from, const Tensor& to,
                          Reduction reduction = Reduction::sum) = 0;
  // `to` holds size() times `from`, in order of the ranks.
  virtual void all_gather(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  // `to` is the sum of part rank() of every member's `from`.
  virtual void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  // Part r of `from` goes to rank r; part r of `to` came from it. Equal parts.
  virtual void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  virtual void broadcast(Stream& stream, const Tensor& tensor, int root) = 0;
  virtual void send(Stream& stream, const Tensor& from, int receiver) = 0;
  virtual void receive(Stream& stream, const Tensor& to, int sender) = 0;
  // Both at once, so that rings and swaps cannot deadlock.
  virtual void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to,
                            int sender) = 0;
};

// All ranks of a run, seen from one of them.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Connects the group of `members` (ranks of the world, this one included). The list is the same on every
  // member. Groups that are used concurrently have different names. Blocks until all members have arrived.
  // The world must outlive its groups.
  virtual std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) = 0;
  // Ends every current and later operation with DeviceError(reason), on all ranks.
  virtual void abort(const std::string& reason) = 0;

  // For ranks that are processes: why the run is over, by abort() or a process that went; "" while it goes
  // on.
  virtual std::string ended() const { return ""; }
  virtual bool refused() const { return false; }  // it ended by a mistake of the user
  // Tells the others that this rank is alive, and its current op.
  virtual void pulse(const std::string& /*stands_at*/) {}
  // The op of every rank, and the ranks that do not answer; "" where ranks share a process.
  virtual std::string roll_call() { return ""; }
};

// Ranks are threads of this process; messages are memory copies. One World a rank.
std::vector<std::unique_ptr<World>> open_memory_worlds(int ranks);

// Ranks are threads of this process, each with its device. All devices share one memory: partitions of a GPU,
// or the CPU. One World a rank.
std::vector<std::unique_ptr<World>> open_device_worlds(const std::vector<Device*>& devices);

// A property of the job that must be the same on all ranks.
struct JobPart {
  std::string name;  // "--seed"
  std::string value;
  std::string origin = {};  // shown, not compared: the file of the value
  bool follows = false;     // derived from earlier parts; named only where those agree
};
using Job = std::vector<JobPart>;

// Ranks are processes under mpirun or srun. DeviceMissing in a build without MPI. Here and below, all ranks
// must arrive within `timeout_s`; else DeviceError names the missing ones. Refused, naming the difference,
// where jobs differ or two processes claim one rank.
std::unique_ptr<World> open_mpi_world(double timeout_s = 120, const Job& job = {});

// Ranks are processes that find rank 0 at MASTER_ADDR:MASTER_PORT, as torchrun sets them, and communicate
// over TCP.
std::unique_ptr<World> open_socket_world(double timeout_s = 120, const Job& job = {});

// Ranks are processes under torchrun, mpirun or srun, with one GPU each, chosen by local rank. When one of
// them ends, waits of the others end with DeviceError. DeviceMissing in a build without NCCL.
std::unique_ptr<World> open_nccl_world(double timeout_s = 120, const Job& job = {});

}  // namespace rehearse::kernels
