// Ranks as processes with one GPU each: NCCL. Collectives end soon after a rank dies: a waiting rank asks
// NCCL and the run's store whether to go on.
#include <nccl.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "kernels/communicate/store_world.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/stream.h"

namespace rehearse::kernels {

namespace {

using Clock = std::chrono::steady_clock;

// The timeout of PyTorch's NCCL watchdog.
constexpr double kPatience_s = 600;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

ncclDataType_t data_type(Type type) {
  switch (type) {
    case Type::fp32:
      return ncclFloat32;
    case Type::bf16:
      return ncclBfloat16;
    case Type::fp16:
      return ncclFloat16;
    case Type::fp8_e4m3:
      return ncclFloat8e4m3;
    case Type::fp8_e5m2:
      return ncclFloat8e5m2;
    case Type::int32:
      return ncclInt32;
    case Type::int64:
      return ncclInt64;
    case Type::uint8:
      return ncclUint8;
  }
  throw DeviceError("NCCL knows no such type");
}

std::size_t count_of(const Tensor& tensor) {
  if (!tensor.contiguous()) throw DeviceError("a collective's tensors must be contiguous");
  return static_cast<std::size_t>(tensor.elements());
}

// The run that the connections belong to.
struct Run {
  std::function<std::string()> ended;               // why it is over, "" while it goes on
  std::function<void(const std::string&)> give_up;  // aborts all connections, with this reason
};

// One non-blocking ncclComm_t: calls may continue in the background, and can be aborted.
class Connection {
 public:
  Connection(const ncclUniqueId& id, int rank, int size, const Run& run) : run_(run) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    or_give_up([&] { settle(ncclCommInitRankConfig(&comm_, size, id, rank, &config), "start"); });
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    if (comm_ == nullptr) return;
    try {
      or_give_up([&] { settle(ncclCommFinalize(comm_), "end"); });
      ncclCommDestroy(comm_);
    } catch (const DeviceError&) {
      // It has been aborted.
    }
  }

  // Calls issue(comm) and waits until NCCL has accepted the operation. The GPU may not have begun it.
  template <typename Issue>
  void put(const Issue& issue, const char* what) {
    or_give_up([&] {
      settle(issue(comm_), what);
      issued_ = Clock::now();
    });
  }

  // Ends current and later operations. Otherwise calls that wait for the GPU, such as freeing memory, would
  // wait forever.
  void abort(const std::string& reason) {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return;
    reason_ = reason;
    ncclCommAbort(comm_);
    comm_ = nullptr;
  }

  // Called while a thread waits for the stream. Throws when waiting has become useless.
  void watch() {
    or_give_up([&] {
      ncclResult_t state = ncclSuccess;
      if (ncclCommGetAsyncError(comm_, &state) != ncclSuccess ||
          (state != ncclSuccess && state != ncclInProgress))
        fail(std::string("NCCL: ") + ncclGetLastError(comm_));
      if (const std::string end = run_.ended(); !end.empty()) throw Lost{end};
      if (seconds_since(issued_) > kPatience_s) throw Lost{"a collective took more than ten minutes"};
    });
  }

 private:
  struct Lost {
    std::string reason;
  };

  // Runs `work` on comm_. On a Lost exception all communicators are aborted: freeing one of them waits for
  // all work on the GPU, and so for the others' hanging operations.
  template <typename Work>
  void or_give_up(const Work& work) {
    try {
      const std::lock_guard lock(mutex_);
      if (comm_ == nullptr && !reason_.empty()) throw DeviceError(reason_);
      work();
    } catch (const Lost& lost) {
      const std::jthread own([&] { abort(lost.reason); });
      run_.give_up(lost.reason);
      throw DeviceError(lost.reason);
    }
  }

  // NCCL may know sooner than the store that a rank is gone, but not which one.
  [[noreturn]] void fail(const std::string& what) { throw Lost{why_ended(run_.ended, what)}; }

  // Most operations are accepted at once. It spins first: a sleep would dominate timings of small operations.
  void settle(ncclResult_t result, const char* what) {
    constexpr auto kPause = std::chrono::microseconds(50);
    constexpr double kSpin_s = 1e-3;
    const auto begin = Clock::now();
    while (result == ncclInProgress) {
      if (ncclCommGetAsyncError(comm_, &result) != ncclSuccess) result = ncclInternalError;
      if (result != ncclInProgress) break;
      if (seconds_since(begin) < kSpin_s) {
        std::this_thread::yield();
        continue;
      }
      if (const std::string end = run_.ended(); !end.empty()) throw Lost{end};
      if (seconds_since(begin) > kPatience_s) throw Lost{std::string("NCCL does not ") + what};
      std::this_thread::sleep_for(kPause);
    }
    if (result != ncclSuccess)
      fail(std::string("NCCL cannot ") + what + ": " + ncclGetErrorString(result) + ": " +
           ncclGetLastError(comm_));
  }

  const Run& run_;
  std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  std::string reason_;  // why it was aborted
  Clock::time_point issued_ = Clock::now();
};

class NcclCommunicator : public Communicator {
 public:
  NcclCommunicator(std::shared_ptr<Connection> connection, int rank, int size)
      : rank_(rank), size_(size), connection_(std::move(connection)) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    const ncclRedOp_t op = reduction == Reduction::sum ? ncclSum : ncclMax;
    put(stream, "all-reduce", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclAllReduce(from.data, to.data, count_of(from), data_type(from.type), op, comm, queue);
    });
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, "all-gather", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclAllGather(from.data, to.data, count_of(from), data_type(from.type), comm, queue);
    });
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, "reduce-scatter", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclReduceScatter(from.data, to.data, count_of(to), data_type(from.type), ncclSum, comm, queue);
    });
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    const std::size_t share = count_of(from) / static_cast<std::size_t>(size_);
    if (count_of(from) % static_cast<std::size_t>(size_) != 0)
      throw DeviceError("an all-to-all needs equal parts");
    const std::size_t bytes = share * bytes_of(from.type);
    put(stream, "all-to-all", [=, this](ncclComm_t comm, cudaStream_t queue) {
      return grouped([&] {
        ncclResult_t result = ncclSuccess;
        for (int peer = 0; peer < size_ && good(result); ++peer) {
          const std::size_t at = static_cast<std::size_t>(peer) * bytes;
          const auto type = data_type(from.type);
          result = ncclSend(static_cast<std::byte*>(from.data) + at, share, type, peer, comm, queue);
          if (good(result))
            result = ncclRecv(static_cast<std::byte*>(to.data) + at, share, type, peer, comm, queue);
        }
        return result;
      });
    });
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    put(stream, "broadcast", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclBroadcast(tensor.data, tensor.data, count_of(tensor), data_type(tensor.type), root, comm,
                           queue);
    });
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    put(stream, "send", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclSend(from.data, count_of(from), data_type(from.type), receiver, comm, queue);
    });
  }

  void receive(Stream& stream, const Tensor& to, int sender) override {
    put(stream, "receive", [=](ncclComm_t comm, cudaStream_t queue) {
      return ncclRecv(to.data, count_of(to), data_type(to.type), sender, comm, queue);
    });
  }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    put(stream, "send and receive", [=](ncclComm_t comm, cudaStream_t queue) {
      return grouped([&] {
        const ncclResult_t sent =
            ncclSend(from.data, count_of(from), data_type(from.type), receiver, comm, queue);
        if (!good(sent)) return sent;
        return ncclRecv(to.data, count_of(to), data_type(to.type), sender, comm, queue);
      });
    });
  }

 private:
  static bool good(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

  template <typename Body>
  static ncclResult_t grouped(const Body& body) {
    const ncclResult_t begun = ncclGroupStart();
    if (begun != ncclSuccess) return begun;
    const ncclResult_t inside = body();
    const ncclResult_t ended = ncclGroupEnd();
    return good(inside) ? ended : inside;
  }

  template <typename Issue>
  void put(Stream& stream, const char* what, const Issue& issue) {
    cuda::CudaStream& of_gpu = cuda::as_cuda(stream);
    of_gpu.put([&](cudaStream_t queue) {
      connection_->put([&](ncclComm_t comm) { return issue(comm, queue); }, what);
    });
    of_gpu.watch().add(watcher_);
  }

  int rank_, size_;
  std::shared_ptr<Connection> connection_;
  // Destroyed before the connection.
  std::shared_ptr<std::function<void()>> watcher_ =
      std::make_shared<std::function<void()>>([this] { connection_->watch(); });
};

class NcclWorld : public StoreWorld {
 public:
  NcclWorld(double timeout_s, const Job& job) : StoreWorld(launched(), timeout_s, job) {
    cuda::check(cudaSetDevice(gpu_), "device");
  }

  std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) override {
    const int place = place_among(members, name);
    std::string key("group ");
    key += name;
    for (const int member : members) key.append(" ").append(std::to_string(member));
    const int before = connected_[key]++;
    key.append(" #").append(std::to_string(before));
    cuda::check(cudaSetDevice(gpu_), "device");
    const auto size = static_cast<int>(members.size());
    const auto connection = std::make_shared<Connection>(identity(key, place == 0), place, size, run_);
    const std::lock_guard lock(mutex_);
    std::erase_if(connections_, [](const auto& other) { return other.expired(); });
    connections_.push_back(connection);
    return std::make_unique<NcclCommunicator>(connection, place, size);
  }

  void abort(const std::string& reason) override {
    StoreWorld::abort(reason);
    std::vector<std::shared_ptr<Connection>> live;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& connection : connections_)
        if (auto still = connection.lock()) live.push_back(std::move(still));
    }
    // All at once: freeing one communicator waits for all work on the GPU, and so for the others' hanging
    // operations.
    std::vector<std::jthread> threads;
    for (const auto& connection : live)
      threads.emplace_back([&connection, &reason] { connection->abort(reason); });
  }

 private:
  // The first member makes the id, the others read it.
  ncclUniqueId identity(const std::string& key, bool first) {
    ncclUniqueId id = {};
    if (first) {
      const ncclResult_t made = ncclGetUniqueId(&id);
      if (made != ncclSuccess)
        throw DeviceError(std::string("NCCL cannot start: ") + ncclGetErrorString(made));
      store().put(key, std::string(id.internal, sizeof id.internal));
      return id;
    }
    const std::string text = store().get(key);
    if (text.size() != sizeof id.internal) throw DeviceError("the ranks of this run have different NCCLs");
    std::copy(text.begin(), text.end(), id.internal);
    return id;
  }

  const int gpu_ = gpu_of(self(), count_gpus());
  const Run run_{[this] { return ended(); }, [this](const std::string& reason) { abort(reason); }};
  std::map<std::string, int> connected_;  // number of connections, by group
  std::mutex mutex_;
  std::vector<std::weak_ptr<Connection>> connections_;
};

}  // namespace

std::unique_ptr<World> open_nccl_world(double timeout_s, const Job& job) {
  return std::make_unique<NcclWorld>(timeout_s, job);
}

}  // namespace rehearse::kernels
