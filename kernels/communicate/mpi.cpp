// Ranks as processes: Open MPI or any other MPI-3, called from the streams' threads.
#include <mpi.h>

#include "kernels/communicator.h"
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
    default:
      throw DeviceError("MPI ranks exchange fp32 and integers only");
  }
}

int count_of(const Tensor& tensor) {
  constexpr std::int64_t kMost = 0x7fffffff;  // MPI-3 counts are ints
  if (!tensor.contiguous()) throw DeviceError("a collective's tensors must be contiguous");
  if (tensor.elements() > kMost) throw DeviceError("an MPI message has at most 2^31 - 1 elements");
  return static_cast<int>(tensor.elements());
}

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(MPI_Comm group) : group_(group) {
    MPI_Comm_rank(group_, &rank_);
    MPI_Comm_size(group_, &size_);
  }
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;
  ~MpiCommunicator() override { MPI_Comm_free(&group_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    const MPI_Op op = reduction == Reduction::sum ? MPI_SUM : MPI_MAX;
    put(stream, [=, this] {
      check(MPI_Allreduce(in(from, to), to.data, count_of(to), type_of(to.type), op, group_), "all-reduce");
    });
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      const auto* own = static_cast<std::byte*>(to.data) +
                        static_cast<std::size_t>(rank_ * from.elements()) * bytes_of(from.type);
      const void* operand = from.data == own ? MPI_IN_PLACE : from.data;
      check(MPI_Allgather(operand, count_of(from), type_of(from.type), to.data, count_of(from),
                          type_of(to.type), group_),
            "all-gather");
    });
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      check(MPI_Reduce_scatter_block(in(from, to), to.data, count_of(to), type_of(to.type), MPI_SUM, group_),
            "reduce-scatter");
    });
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    put(stream, [=, this] {
      const int share = count_of(to) / size_;
      check(MPI_Alltoall(in(from, to), share, type_of(from.type), to.data, share, type_of(to.type), group_),
            "all-to-all");
    });
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    put(stream, [=, this] {
      check(MPI_Bcast(tensor.data, count_of(tensor), type_of(tensor.type), root, group_), "broadcast");
    });
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    put(stream, [=, this] {
      check(MPI_Send(from.data, count_of(from), type_of(from.type), receiver, 0, group_), "send");
    });
  }

  void receive(Stream& stream, const Tensor& to, int sender) override {
    put(stream, [=, this] {
      check(MPI_Recv(to.data, count_of(to), type_of(to.type), sender, 0, group_, MPI_STATUS_IGNORE),
            "receive");
    });
  }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    put(stream, [=, this] {
      check(MPI_Sendrecv(from.data, count_of(from), type_of(from.type), receiver, 0, to.data, count_of(to),
                         type_of(to.type), sender, 0, group_, MPI_STATUS_IGNORE),
            "send and receive");
    });
  }

 private:
  static void put(Stream& stream, std::function<void()> action) {
    cpu::as_cpu(stream).put(std::move(action));
  }
  static const void* in(const Tensor& from, const Tensor& to) {
    return from.data == to.data ? MPI_IN_PLACE : from.data;
  }

  MPI_Comm group_;
  int rank_ = 0, size_ = 1;
};

class MpiWorld : public World {
 public:
  MpiWorld() {
    int given = 0;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &given), "start");
    if (given != MPI_THREAD_MULTIPLE) throw DeviceMissing("this MPI cannot be called from several threads");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;
  ~MpiWorld() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) override {
    MPI_Group world = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "group");
    check(MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &some), "group");
    constexpr std::size_t kTags = 32768;  // every MPI allows as many
    const auto tag = static_cast<int>(std::hash<std::string>{}(name) % kTags);
    MPI_Comm group = MPI_COMM_NULL;
    const int result = MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &group);
    MPI_Group_free(&some);
    MPI_Group_free(&world);
    check(result, "group");
    if (group == MPI_COMM_NULL) {
      throw DeviceError("rank " + std::to_string(rank_) + " is no member of the group \"" + name + "\"");
    }
    return std::make_unique<MpiCommunicator>(group);
  }

  // MPI knows no gentler end that all ranks notice.
  void abort(const std::string& /*reason*/) override { MPI_Abort(MPI_COMM_WORLD, 1); }

 private:
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::unique_ptr<World> open_mpi_world() {
  return std::make_unique<MpiWorld>();
}

}  // namespace rehearse::kernels
