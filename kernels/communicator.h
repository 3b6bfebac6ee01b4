// What can the ranks of a group say to each other?
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace rehearse::kernels {

enum class Reduction : std::uint8_t { sum, maximum };

// One rank's end of a group. Every member calls the same operations in the same order, each on one stream of
// its device; they run when the stream comes to them and return at once. Tensors are contiguous; `from` and
// `to` may be the same memory where they are equally long. A failure is thrown by the stream's synchronize().
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;  // in the group
  virtual int size() const = 0;

  virtual void all_reduce(Stream& stream, const Tensor& from, const Tensor& to,
                          Reduction reduction = Reduction::sum) = 0;
  // `to` holds size() times `from`, in order of the ranks.
  virtual void all_gather(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  // `to` is the sum of every member's part of `from` that has this rank's number.
  virtual void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  // Part r of `from` goes to rank r; part r of `to` came from it. Equal parts.
  virtual void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) = 0;
  virtual void broadcast(Stream& stream, const Tensor& tensor, int root) = 0;
  virtual void send(Stream& stream, const Tensor& from, int receiver) = 0;
  virtual void receive(Stream& stream, const Tensor& to, int sender) = 0;
  // Both at once, so that rings and swaps cannot lock up.
  virtual void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to,
                            int sender) = 0;
};

// All ranks of a run, seen from one of them.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // The group of `members` (ranks of the world, this one among them), the same list on every member. Groups
  // that are used side by side have different names. Blocks until all members have come. The world must
  // outlive its groups.
  virtual std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) = 0;
  // Ends every operation in flight and to come with DeviceError(reason), on all ranks.
  virtual void abort(const std::string& reason) = 0;

  // Of ranks that are processes. Why the run is over: abort(), or a process that went; "" while it goes on.
  virtual std::string ended() const { return ""; }
  virtual bool refused() const { return false; }  // over by a mistake of the user's
  // Tells the others that this rank lives, and at which op it stands.
  virtual void pulse(const std::string& /*stands_at*/) {}
  // Where every rank stands, and which of them do not answer; "" where ranks share a process.
  virtual std::string roll_call() { return ""; }
};

// Ranks are threads of this process, messages copies of memory. One World a rank.
std::vector<std::unique_ptr<World>> open_memory_worlds(int ranks);

// Ranks are threads of this process too, each with its device, and all devices share one memory: partitions
// of a GPU, or the CPU. One World a rank.
std::vector<std::unique_ptr<World>> open_device_worlds(const std::vector<Device*>& devices);

// A part of what all ranks of a run must have in common.
struct JobPart {
  std::string name;  // "--seed"
  std::string value;
  std::string origin = {};  // shown, not compared: the file that `value` is of
  bool follows = false;     // from parts before it, and is named only where those agree
};
using Job = std::vector<JobPart>;

// Ranks are processes under mpirun or srun. DeviceMissing in a build without MPI. Here and below all must
// come within `timeout_s`: DeviceError, naming who has not. Refused, naming the difference, where their jobs
// differ or two are the same rank.
std::unique_ptr<World> open_mpi_world(double timeout_s = 120, const Job& job = {});

// Ranks are processes that find rank 0 at MASTER_ADDR:MASTER_PORT, as torchrun tells them, and speak over
// TCP.
std::unique_ptr<World> open_socket_world(double timeout_s = 120, const Job& job = {});

// Ranks are processes under torchrun, mpirun or srun, with one GPU each: that of their local rank. When one
// of them ends, waits of the others end with DeviceError. DeviceMissing in a build without NCCL.
std::unique_ptr<World> open_nccl_world(double timeout_s = 120, const Job& job = {});

}  // namespace rehearse::kernels
