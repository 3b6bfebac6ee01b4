// NCCL's non-blocking communicators: a call is often still in progress when it returns, and runs when its
// stream reaches it.
#include <nccl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "gpu.h"
#include "nccl_hub.h"
#include "nccl_message.h"
#include "order.h"
#include "stream.h"

namespace {

using namespace cuda_on_cpu;

// A call with its memory.
struct Transfer {
  Part part;
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes_from = 0, bytes_to = 0;
};

// One rank in a group.
class Member {
 public:
  Member(int rank, int size) : rank_(rank), size_(size) {}
  ~Member() {
    if (socket_ >= 0) close(socket_);
  }

  int size() const { return size_; }

  void join(const ncclUniqueId& id, std::uint64_t gpu) {
    const Unseen unseen;
    const int socket = connect_to_hub(id);
    {
      const std::lock_guard lock(mutex_);
      socket_ = socket;
      if (aborted_) return;
    }
    const Hello hello{rank_, size_, gpu};
    Message welcome;
    const bool heard = socket >= 0 && say(socket, &hello, sizeof hello) && hear(socket, welcome);
    set_state(heard ? welcome.state : ncclSystemError, heard ? welcome.reason : "the first rank is gone");
  }

  // Of calls on several streams, the earliest call runs first.
  ncclResult_t put(const std::shared_ptr<Member>& self, std::vector<Transfer> transfers,
                   cudaStream_t stream) {
    constexpr int kHurried = 3;  // of so many calls one is done when it returns
    constexpr double kPause_s = 2e-4;
    int turn = 0;
    {
      const Unseen unseen;
      const std::lock_guard lock(mutex_);
      if (state_now() != ncclSuccess)
        return state_now() == ncclInProgress ? ncclInvalidArgument : state_now();
      turn = put_++;
      if (turn % kHurried != 0) settles_s_ = now_s() + kPause_s;
    }
    stream_of(stream).put([self, turn, all = std::move(transfers)] { self->run(turn, all); });
    return turn % kHurried != 0 ? ncclInProgress : ncclSuccess;
  }

  ncclResult_t state() {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    return state_now();
  }
  const char* reason() {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    return reason_.c_str();
  }

  void finalize() {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  void leave() {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    if (!aborted_) say(socket_, Message());
  }
  void abort() {
    const Unseen unseen;
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
    changed_.notify_all();
  }

 private:
  ncclResult_t state_now() const {
    if (state_ != ncclSuccess) return state_;
    return now_s() < settles_s_ || (ending_ && ran_ < put_) ? ncclInProgress : ncclSuccess;
  }

  void set_state(ncclResult_t state, const std::string& reason) {
    const std::lock_guard lock(mutex_);
    state_ = state;
    reason_ = reason;
  }

  void run(int turn, const std::vector<Transfer>& transfers) {
    Message calls, answer;
    for (const Transfer& transfer : transfers) {
      const auto* first = static_cast<const std::byte*>(transfer.from);
      reads(first, transfer.bytes_from);
      calls.parts.push_back(transfer.part);
      calls.data.emplace_back(first, first + transfer.bytes_from);
    }
    if (!exchange(turn, calls, answer)) return;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const std::size_t bytes = std::min(answer.data[i].size(), transfers[i].bytes_to);
      writes(transfers[i].to, bytes);
      std::copy_n(answer.data[i].data(), bytes, static_cast<std::byte*>(transfers[i].to));
    }
  }

  // False when it was aborted: a call that fails waits for that.
  bool exchange(int turn, const Message& calls, Message& answer) {
    const Unseen unseen;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return ran_ == turn || aborted_; });
      if (aborted_) return false;
    }
    const bool heard = say(socket_, calls) && hear(socket_, answer);
    if (!heard) answer = {ncclRemoteError, "the first rank is gone", {}, {}};
    if (answer.state != ncclSuccess) set_state(answer.state, answer.reason);
    std::unique_lock lock(mutex_);
    if (answer.state != ncclSuccess) changed_.wait(lock, [this] { return aborted_; });
    ++ran_;
    changed_.notify_all();
    return !aborted_;
  }

  int rank_, size_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int socket_ = -1;
  ncclResult_t state_ = ncclInProgress;
  std::string reason_;
  double settles_s_ = 0;
  int put_ = 0, ran_ = 0;
  bool ending_ = false, aborted_ = false;
};

// One GPU counts as several where its processes say that they are on different machines.
std::uint64_t gpu_of_all_machines() {
  const char* machine = std::getenv("NCCL_HOSTID");
  return std::hash<std::string>()((machine == nullptr ? "" : machine) +
                                  ("/" + std::to_string(gpu_of_machine())));
}

// State of this thread between ncclGroupStart() and ncclGroupEnd().
struct Group {
  int depth = 0;
  std::shared_ptr<Member> member;
  std::vector<Transfer> transfers;
  cudaStream_t stream = nullptr;
};
thread_local Group group;

}  // namespace

struct ncclComm {
  std::shared_ptr<Member> member;
};

namespace {

ncclResult_t put(ncclComm_t comm, Transfer transfer, cudaStream_t stream) {
  if (transfer.part.count == 0) return ncclSuccess;
  if (group.depth == 0) return comm->member->put(comm->member, {transfer}, stream);
  group.member = comm->member;
  group.stream = stream;
  group.transfers.push_back(transfer);
  return ncclSuccess;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclUnhandledCudaError:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case ncclSystemError:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case ncclInternalError:
      return "internal error - please report this issue to the NCCL developers";
    case ncclInvalidArgument:
      return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case ncclInvalidUsage:
      return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInProgress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

const char* ncclGetLastError(ncclComm_t comm) {
  return comm == nullptr ? "" : comm->member->reason();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  *id = start_hub();
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const auto member = std::make_shared<Member>(rank, ranks);
  *comm = new ncclComm{member};
  std::thread([member, id, gpu = gpu_of_all_machines()] { member->join(id, gpu); }).detach();
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = comm->member->state();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  comm->member->finalize();
  return comm->member->state();
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  comm->member->leave();
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  comm->member->abort();
  drain_all();  // NCCL frees memory of the GPU, which waits for all that runs there
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0 || !group.member) return ncclSuccess;
  const Group all = std::exchange(group, {});
  return all.member->put(all.member, all.transfers, all.stream);
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type);
  return put(comm, {{Kind::all_reduce, type, operation, 0, count}, from, to, bytes, bytes}, stream);
}

ncclResult_t ncclAllGather(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type), ranks = static_cast<std::size_t>(comm->member->size());
  return put(comm, {{Kind::all_gather, type, 0, 0, count}, from, to, bytes, ranks * bytes}, stream);
}

ncclResult_t ncclReduceScatter(const void* from, void* to, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type), ranks = static_cast<std::size_t>(comm->member->size());
  return put(comm, {{Kind::reduce_scatter, type, operation, 0, count}, from, to, ranks * bytes, bytes},
             stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = count * bytes_of(type);
  return put(comm, {{Kind::broadcast, type, 0, root, count}, from, to, bytes, bytes}, stream);
}

ncclResult_t ncclSend(const void* from, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return put(comm, {{Kind::send, type, 0, peer, count}, from, nullptr, count * bytes_of(type), 0}, stream);
}

ncclResult_t ncclRecv(void* to, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return put(comm, {{Kind::receive, type, 0, peer, count}, nullptr, to, 0, count * bytes_of(type)}, stream);
}
