// Ranks as processes: Open MPI or any other MPI-3, called from the streams' threads.
#include <mpi.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stop_token>
#include <thread>

#include "kernels/communicate/reduce.h"
#include "kernels/communicate/store_world.h"
#include "kernels/cpu/stream.h"

namespace rehearse::kernels {

namespace {

void check(int result, const char* what) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw DeviceError(std::string("MPI ") + what + ": " + text);
}

MPI_Datatype type_of(Type type) {
  switch (type) {
    case Type::fp32:
      return MPI_FLOAT;
    case Type::int32:
      return MPI_INT32_T;
    case Type::int64:
      return MPI_INT64_T;
    case Type::uint8:
      return MPI_UINT8_T;
    case Type::bf16:
    case Type::fp16:
      return MPI_UINT16_T;
    default:
      throw DeviceError("MPI ranks exchange fp32, bf16, fp16 and integers only");
  }
}

// MPI has no 16-bit float type. Their bits are sent as integers, and our own operations reduce them.
template <Type type, Reduction reduction>
void reduce_bits(void* more, void* sum, int* count, MPI_Datatype* /*of 16 bits*/) {
  reduce(type, sum, more, *count, reduction);
}

template <Type type, Reduction reduction>
MPI_Op op_on_bits() {
  static const MPI_Op op = [] {
    constexpr int kCommutes = 1;
    MPI_Op made = MPI_OP_NULL;
    check(MPI_Op_create(reduce_bits<type, reduction>, kCommutes, &made), "operation");
    return made;
  }();
  return op;
}

MPI_Op op_of(Type type, Reduction reduction) {
  const bool sums = reduction == Reduction::sum;
  if (type == Type::bf16)
    return sums ? op_on_bits<Type::bf16, Reduction::sum>() : op_on_bits<Type::bf16, Reduction::maximum>();
  if (type == Type::fp16)
    return sums ? op_on_bits<Type::fp16, Reduction::sum>() : op_on_bits<Type::fp16, Reduction::maximum>();
  return sums ? MPI_SUM : MPI_MAX;
}

int count_of(const Tensor& tensor) {
  constexpr std::int64_t kMax = 0x7fffffff;  // MPI-3 counts are ints
  if (!tensor.contiguous()) throw DeviceError("a collective's tensors must be contiguous");
  if (tensor.elements() > kMax) throw DeviceError("an MPI message has at most 2^31 - 1 elements");
  return static_cast<int>(tensor.elements());
}

class MpiCommunicator : public Communicator {
 public:
  // `still_on` throws when waiting has become useless.
  MpiCommunicator(MPI_Comm group, const std::function<void()>& still_on)
      : group_(group), still_on_(still_on) {
    MPI_Comm_rank(group_, &rank_);
    MPI_Comm_size(group_, &size_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override {
    try {
      still_on_();
      MPI_Comm_free(&group_);
    } catch (const DeviceError&) {
      // Operations may still be in flight.
    }
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    const MPI_Op op = op_of(to.type, reduction);
    put(stream, [=, this] {
      finish(
          [&](MPI_Request* request) {
            return MPI_Iallreduce(in(from, to), to.data, count_of(to), type_of(to.type), op, group_, request);
          },
          "all-reduce");
    });
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      const auto* own = static_cast<std::byte*>(to.data) +
                        static_cast<std::size_t>(rank_ * from.elements()) * bytes_of(from.type);
      const void* operand = from.data == own ? MPI_IN_PLACE : from.data;
      finish(
          [&](MPI_Request* request) {
            return MPI_Iallgather(operand, count_of(from), type_of(from.type), to.data, count_of(from),
                                  type_of(to.type), group_, request);
          },
          "all-gather");
    });
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      finish(
          [&](MPI_Request* request) {
            return MPI_Ireduce_scatter_block(in(from, to), to.data, count_of(to), type_of(to.type),
                                             op_of(to.type, Reduction::sum), group_, request);
          },
          "reduce-scatter");
    });
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      const int share = count_of(to) / size_;
      finish(
          [&](MPI_Request* request) {
            return MPI_Ialltoall(in(from, to), share, type_of(from.type), to.data, share, type_of(to.type),
                                 group_, request);
          },
          "all-to-all");
    });
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    put(stream, [=, this] {
      finish(
          [&](MPI_Request* request) {
            return MPI_Ibcast(tensor.data, count_of(tensor), type_of(tensor.type), root, group_, request);
          },
          "broadcast");
    });
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    put(stream, [=, this] {
      finish([&](MPI_Request* request) { return start_send(from, receiver, request); }, "send");
    });
  }

  void receive(Stream& stream, const Tensor& to, int sender) override {
    put(stream, [=, this] {
      finish([&](MPI_Request* request) { return start_receive(to, sender, request); }, "receive");
    });
  }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    put(stream, [=, this] {
      std::array<MPI_Request, 2> requests = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
      check(start_receive(to, sender, &requests[0]), "receive");
      check(start_send(from, receiver, &requests[1]), "send");
      wait_for(requests.data(), 2, "send and receive");
    });
  }

 private:
  static void put(Stream& stream, std::function<void()> action) {
    cpu::as_cpu(stream).put(std::move(action));
  }
  static const void* in(const Tensor& from, const Tensor& to) {
    return from.data == to.data ? MPI_IN_PLACE : from.data;
  }

  int start_send(const Tensor& from, int receiver, MPI_Request* request) const {
    return MPI_Isend(from.data, count_of(from), type_of(from.type), receiver, 0, group_, request);
  }
  int start_receive(const Tensor& to, int sender, MPI_Request* request) const {
    return MPI_Irecv(to.data, count_of(to), type_of(to.type), sender, 0, group_, request);
  }

  // Uses no blocking call: a blocked call would not wake when another rank has gone.
  template <typename Start>
  void finish(const Start& start, const char* what) const {
    MPI_Request request = MPI_REQUEST_NULL;
    check(start(&request), what);
    wait_for(&request, 1, what);
  }
  void wait_for(MPI_Request* requests, int count, const char* what) const {
    constexpr int kEager = 64;
    constexpr auto kPause = std::chrono::microseconds(20);
    int done = 0, tries = 0;
    while (true) {
      check(MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE), what);
      if (done != 0) return;
      still_on_();
      if (++tries < kEager) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kPause);  // leaves the core to the kernels
      }
    }
  }

  MPI_Comm group_;
  const std::function<void()>& still_on_;
  int rank_ = 0, size_ = 1;
};

// While it exists, MPI waits for all ranks. A rank may be gone or stopped, and MPI's wait cannot be
// interrupted. After `seconds` the program ends.
class LongestWait {
 public:
  LongestWait(const char* what, double seconds)
      : thread_([this, what, seconds](const std::stop_token& over) {
          std::unique_lock lock(mutex_);
          if (ended_.wait_for(lock, over, std::chrono::duration<double>(seconds),
                              [&] { return over.stop_requested(); }))
            return;
          std::fprintf(stderr, "rehearse: MPI has not %s within %g s: a rank does not answer\n", what,
                       seconds);
          std::_Exit(1);
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

class Mpi {
 public:
  explicit Mpi(double timeout_s) : timeout_s_(timeout_s + kGrace_s) {
    const LongestWait longest("begun", timeout_s_);
    int given = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given), "start");
    if (given != MPI_THREAD_MULTIPLE) throw DeviceMissing("this MPI cannot be called from several threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;
  // The launcher kills all ranks when the first exits with an error. Rank 0 prints the reason, so it exits
  // first.
  ~Mpi() {
    if (broken_) {  // MPI_Finalize would wait for ranks that are gone
      int rank = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      if (rank > 0) std::this_thread::sleep_for(std::chrono::seconds(1));
      return;
    }
    const LongestWait longest("ended", timeout_s_);
    MPI_Finalize();
  }

  static Launched met(double timeout_s) {
    const LongestWait longest("brought all ranks together", timeout_s + kGrace_s);
    return meet();
  }

 private:
  // Rank 0 opens its store at a free port, and sends the port to the others.
  static Launched meet() {
    Launched self = launched();
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.size);
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine), "start");
    int neighbours = 0;
    MPI_Comm_size(machine, &neighbours);
    MPI_Comm_free(&machine);
    struct Place {
      char host[MPI_MAX_PROCESSOR_NAME] = "127.0.0.1";
      int port = 0;
    } place;
    if (self.rank == 0) {
      int length = 0;
      if (neighbours < self.size) MPI_Get_processor_name(place.host, &length);
      place.port = port_of(listen_at(0));
    }
    check(MPI_Bcast(&place, sizeof place, MPI_BYTE, 0, MPI_COMM_WORLD), "start");
    self.host = place.host;
    self.port = place.port;
    return self;
  }

 protected:
  bool broken_ = true;  // until all ranks have met

 private:
  static constexpr double kGrace_s = 5;
  double timeout_s_;
};

class MpiWorld : private Mpi, public StoreWorld {
 public:
  MpiWorld(double timeout_s, const Job& job) : Mpi(timeout_s), StoreWorld(met(timeout_s), timeout_s, job) {
    broken_ = false;
  }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  ~MpiWorld() override { broken_ = !ended().empty(); }

  std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) override {
    place_among(members, name);
    MPI_Group world = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "group");
    check(MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &some), "group");
    constexpr std::size_t kTags = 32768;  // every MPI allows this many
    const auto tag = static_cast<int>(std::hash<std::string>{}(name) % kTags);
    MPI_Comm group = MPI_COMM_NULL;
    const int result = MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &group);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    check(result, "group");
    return std::make_unique<MpiCommunicator>(group, still_on_);
  }

 private:
  std::function<void()> still_on_ = [this] { require_going_on(); };
};

}  // namespace

std::unique_ptr<World> open_mpi_world(double timeout_s, const Job& job) {
  return std::make_unique<MpiWorld>(timeout_s, job);
}

}  // namespace rehearse::kernels
