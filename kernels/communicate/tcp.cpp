// Ranks as processes that communicate over TCP: no MPI needed.
#include <cstring>
#include <map>

#include "kernels/communicate/exchange.h"
#include "kernels/communicate/peers.h"
#include "kernels/communicate/reduce.h"
#include "kernels/communicate/store_world.h"
#include "kernels/cpu/stream.h"

namespace rehearse::kernels {

namespace {

// State that all groups of a process share.
struct Wire {
  std::function<Socket(const std::string& group, int rank)> connect;  // rank of the world
  std::function<void()> still_on;
  std::function<void(const std::string& what)> fail;  // throws
};

// Collectives as rings (Patarasuk and Yuan 2009): each part is summed once, in the order of the ring.
class TcpCommunicator : public Communicator {
 public:
  TcpCommunicator(std::string name, std::vector<int> members, int rank, const Wire& wire)
      : name_(std::move(name)), members_(std::move(members)), rank_(rank), wire_(wire) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    require_contiguous(from, to, 1, 1);
    put(stream, [this, from, to, reduction] {
      if (from.data != to.data) std::memcpy(to.data, from.data, bytes(to, to.elements()));
      scatter_ring(to, reduction);
      gather_ring(to);
    });
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, size(), 1);
    put(stream, [this, from, to] {
      std::byte* own = offset(to.data, part(to, rank_), to.type);
      if (from.data != own) std::memcpy(own, from.data, bytes(from, from.elements()));
      gather_ring(to);
    });
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, size());
    put(stream, [this, from, to] {
      const auto* first = static_cast<const std::byte*>(from.data);
      std::vector<std::byte> sums(first, first + bytes(from, from.elements()));
      Tensor work = from;
      work.data = sums.data();
      scatter_ring(work, Reduction::sum);
      std::memcpy(to.data, offset(work.data, part(work, rank_), to.type), bytes(to, to.elements()));
    });
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, 1);
    if (from.elements() % size() != 0) throw DeviceError("an all-to-all needs equal parts");
    put(stream, [this, from, to] {
      const std::size_t share = bytes(from, from.elements() / size());
      const auto at = [share](void* memory, int peer) {
        return static_cast<std::byte*>(memory) + static_cast<std::size_t>(peer) * share;
      };
      std::memcpy(at(to.data, rank_), at(from.data, rank_), share);
      for (int distance = 1; distance < size(); ++distance) {
        const int next = (rank_ + distance) % size(), last = (rank_ + size() - distance) % size();
        move(next, at(from.data, next), share, last, at(to.data, last), share);
      }
    });
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    require_contiguous(tensor, tensor, 1, 1);
    put(stream, [this, tensor, root] {
      const std::size_t length = bytes(tensor, tensor.elements());
      if (rank_ != root) return move(-1, nullptr, 0, root, tensor.data, length);
      for (int peer = 0; peer < size(); ++peer)
        if (peer != root) move(peer, tensor.data, length, -1, nullptr, 0);
    });
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    require_contiguous(from, from, 1, 1);
    put(stream,
        [this, from, receiver] { move(receiver, from.data, bytes(from, from.elements()), -1, nullptr, 0); });
  }

  void receive(Stream& stream, const Tensor& to, int sender) override {
    require_contiguous(to, to, 1, 1);
    put(stream, [this, to, sender] { move(-1, nullptr, 0, sender, to.data, bytes(to, to.elements())); });
  }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    require_contiguous(from, from, 1, 1);
    require_contiguous(to, to, 1, 1);
    put(stream, [this, from, receiver, to, sender] {
      move(receiver, from.data, bytes(from, from.elements()), sender, to.data, bytes(to, to.elements()));
    });
  }

 private:
  static void put(Stream& stream, std::function<void()> action) {
    cpu::as_cpu(stream).put(std::move(action));
  }
  static std::size_t bytes(const Tensor& tensor, std::int64_t elements) {
    return static_cast<std::size_t>(elements) * bytes_of(tensor.type);
  }
  // First element of a rank's part.
  std::int64_t part(const Tensor& tensor, int peer) const { return tensor.elements() * peer / size(); }

  const Socket* socket(int peer) {
    if (peer < 0) return nullptr;
    auto found = sockets_.find(peer);
    if (found == sockets_.end())
      found = sockets_.emplace(peer, wire_.connect(name_, members_[static_cast<std::size_t>(peer)])).first;
    return &found->second;
  }

  // Sends to `next` and receives from `last`; -1: nobody.
  void move(int next, const void* out, std::size_t out_bytes, int last, void* in, std::size_t in_bytes) {
    try {
      wire_.still_on();
      exchange({socket(next), out, out_bytes}, {socket(last), in, in_bytes}, wire_.still_on);
    } catch (const DeviceError& error) {
      wire_.fail(error.what());
    }
  }

  // Afterwards this rank's part is the sum over all ranks; the other parts are undefined.
  void scatter_ring(const Tensor& tensor, Reduction reduction) {
    std::vector<std::byte> arrived;
    for (int turn = 0; turn + 1 < size(); ++turn) {
      const int out = (rank_ + 2 * size() - turn - 1) % size(), in = (rank_ + 2 * size() - turn - 2) % size();
      const std::int64_t count = part(tensor, in + 1) - part(tensor, in);
      arrived.resize(bytes(tensor, count));
      pass_on(tensor, out, arrived.data(), arrived.size());
      reduce(tensor.type, offset(tensor.data, part(tensor, in), tensor.type), arrived.data(), count,
             reduction);
    }
  }

  void gather_ring(const Tensor& tensor) {
    for (int turn = 0; turn + 1 < size(); ++turn) {
      const int out = (rank_ + size() - turn) % size(), in = (rank_ + 2 * size() - turn - 1) % size();
      pass_on(tensor, out, offset(tensor.data, part(tensor, in), tensor.type),
              bytes(tensor, part(tensor, in + 1) - part(tensor, in)));
    }
  }

  // Sends part `out` to the next rank of the ring, and receives `in` from the previous one.
  void pass_on(const Tensor& tensor, int out, std::byte* in, std::size_t in_bytes) {
    move((rank_ + 1) % size(), offset(tensor.data, part(tensor, out), tensor.type),
         bytes(tensor, part(tensor, out + 1) - part(tensor, out)), (rank_ + size() - 1) % size(), in,
         in_bytes);
  }

  std::string name_;
  std::vector<int> members_;
  int rank_;
  const Wire& wire_;
  std::map<int, Socket> sockets_;  // by rank in the group
};

class TcpWorld : public StoreWorld {
 public:
  TcpWorld(double timeout_s, const Job& job)
      : StoreWorld(launched(), timeout_s, job),
        peers_(rank(), store().token(), timeout_s, [this](int peer) { return address_of(peer); }) {
    store().put(address_key(rank()), store().own_address() + " " + std::to_string(peers_.port()));
  }

  // Members connect when they first communicate.
  std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) override {
    std::string key = name;
    for (const int member : members) key.append(" ").append(std::to_string(member));
    return std::make_unique<TcpCommunicator>(key, members, place_among(members, name), wire_);
  }

 private:
  static std::string address_key(int rank) { return "address of rank " + std::to_string(rank); }

  Peers::Address address_of(int peer) {
    const std::string note = store().get(address_key(peer));
    const std::size_t space = note.rfind(' ');
    return {note.substr(0, space), std::stoi(note.substr(space + 1))};
  }

  Peers peers_;
  Wire wire_{
      [this](const std::string& group, int peer) { return peers_.connect(group, peer, wire_.still_on); },
      [this] { require_going_on(); }, [this](const std::string& what) { fail(what); }};
};

}  // namespace

std::unique_ptr<World> open_socket_world(double timeout_s, const Job& job) {
  return std::make_unique<TcpWorld>(timeout_s, job);
}

}  // namespace rehearse::kernels
