// Ranks as threads of one process: every rank reads its peers' memory.
#include <cstring>
#include <map>

#include "kernels/communicate/reduce.h"
#include "kernels/communicate/thread_world.h"
#include "kernels/cpu/stream.h"

namespace rehearse::kernels {

namespace {

// State that the members of one group share.
struct Group {
  Group(const std::vector<int>& ranks)
      : size(static_cast<int>(ranks.size())), meeting(monitor, size), from(ranks.size()), to(ranks.size()) {}

  struct Mail {
    const void* data = nullptr;  // until the receiver has it
    std::size_t bytes = 0;
  };
  int size;
  Monitor monitor;
  Barrier meeting;
  std::vector<const void*> from;  // by rank: operands of the operation in flight
  std::vector<void*> to;
  std::map<std::pair<int, int>, Mail> mail;  // by sender and receiver
};

void copy(void* to, const void* from, std::int64_t elements, Type type) {
  if (to != from) std::memcpy(to, from, static_cast<std::size_t>(elements) * bytes_of(type));
}

class MemoryCommunicator : public Communicator {
 public:
  MemoryCommunicator(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return group_->size; }

  // Each rank sums its own part of all operands, then collects the other parts.
  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    require_contiguous(from, to, 1, 1);
    put(stream, [this, from, to, reduction] {
      begin(from, to);
      const std::int64_t first = part(from, rank_), count = part(from, rank_ + 1) - first;
      sum_part(from.type, first, count, offset(to.data, first, to.type), reduction);
      group_->meeting.arrive();
      for (int peer = 0; peer < size(); ++peer) {
        const std::int64_t at = part(from, peer);
        copy(offset(to.data, at, to.type), offset(group_->to[index(peer)], at, to.type),
             part(from, peer + 1) - at, to.type);
      }
      group_->meeting.arrive();
    });
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, size(), 1);
    put(stream, [this, from, to] {
      begin(from, to);
      for (int peer = 0; peer < size(); ++peer) {
        copy(offset(to.data, peer * from.elements(), to.type), group_->from[index(peer)], from.elements(),
             to.type);
      }
      group_->meeting.arrive();
    });
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, size());
    put(stream, [this, from, to] {
      begin(from, to);
      sum_part(from.type, rank_ * to.elements(), to.elements(), static_cast<std::byte*>(to.data),
               Reduction::sum);
      group_->meeting.arrive();
    });
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, 1);
    if (from.elements() % size() != 0) throw DeviceError("an all-to-all needs equal parts");
    put(stream, [this, from, to] {
      begin(from, to);
      const std::int64_t share = from.elements() / size();
      for (int peer = 0; peer < size(); ++peer) {
        copy(offset(to.data, peer * share, to.type),
             offset(group_->from[index(peer)], rank_ * share, to.type), share, to.type);
      }
      group_->meeting.arrive();
    });
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    require_contiguous(tensor, tensor, 1, 1);
    put(stream, [this, tensor, root] {
      begin(tensor, tensor);
      copy(tensor.data, group_->from[index(root)], tensor.elements(), tensor.type);
      group_->meeting.arrive();
    });
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    require_contiguous(from, from, 1, 1);
    put(stream, [this, from, receiver] {
      offer(from, receiver);
      wait_until_taken(receiver);
    });
  }

  void receive(Stream& stream, const Tensor& to, int sender) override {
    require_contiguous(to, to, 1, 1);
    put(stream, [this, to, sender] { take(to, sender); });
  }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    require_contiguous(from, from, 1, 1);
    require_contiguous(to, to, 1, 1);
    put(stream, [this, from, receiver, to, sender] {
      offer(from, receiver);
      take(to, sender);
      wait_until_taken(receiver);
    });
  }

 private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  static void put(Stream& stream, std::function<void()> action) {
    cpu::as_cpu(stream).put(std::move(action));
  }

  // First element of a rank's part.
  std::int64_t part(const Tensor& tensor, int peer) const { return tensor.elements() * peer / size(); }

  void begin(const Tensor& from, const Tensor& to) {
    group_->from[index(rank_)] = from.data;
    group_->to[index(rank_)] = to.data;
    group_->meeting.arrive();
  }

  // Sums in the order of the ranks, so that every rank computes the same result. `to` may be this rank's own
  // operand. Its old values must then be rank 0's, or are copied aside.
  void sum_part(Type type, std::int64_t first, std::int64_t count, std::byte* to, Reduction reduction) {
    const std::byte* own = offset(group_->from[index(rank_)], first, type);
    std::vector<std::byte> aside;
    if (own == to && rank_ != 0) {
      aside.assign(own, own + static_cast<std::size_t>(count) * bytes_of(type));
      own = aside.data();
    }
    for (int peer = 0; peer < size(); ++peer) {
      const std::byte* operand = peer == rank_ ? own : offset(group_->from[index(peer)], first, type);
      if (peer == 0) {
        copy(to, operand, count, type);
      } else {
        reduce(type, to, operand, count, reduction);
      }
    }
  }

  void offer(const Tensor& from, int receiver) {
    Group::Mail& mail = mail_between(rank_, receiver);
    group_->monitor.wait_for([&] { return mail.data == nullptr; });
    group_->monitor.change([&] {
      mail = {from.data, static_cast<std::size_t>(from.elements()) * bytes_of(from.type)};
    });
  }

  void take(const Tensor& to, int sender) {
    Group::Mail& mail = mail_between(sender, rank_);
    group_->monitor.wait_for([&] { return mail.data != nullptr; });
    if (mail.bytes != static_cast<std::size_t>(to.elements()) * bytes_of(to.type)) {
      throw DeviceError("rank " + std::to_string(rank_) + " expects " +
                        std::to_string(static_cast<std::size_t>(to.elements()) * bytes_of(to.type)) +
                        " bytes of rank " + std::to_string(sender) + ", which sends " +
                        std::to_string(mail.bytes));
    }
    std::memcpy(to.data, mail.data, mail.bytes);
    group_->monitor.change([&] { mail.data = nullptr; });
  }

  void wait_until_taken(int receiver) {
    Group::Mail& mail = mail_between(rank_, receiver);
    group_->monitor.wait_for([&] { return mail.data == nullptr; });
  }

  Group::Mail& mail_between(int sender, int receiver) {
    Group::Mail* mail = nullptr;
    group_->monitor.change_quietly([&] { mail = &group_->mail[{sender, receiver}]; });
    return *mail;
  }

  std::shared_ptr<Group> group_;
  int rank_;
};

}  // namespace

std::vector<std::unique_ptr<World>> open_memory_worlds(int ranks) {
  using MemoryWorld = ThreadWorld<Group>;
  const auto process = std::make_shared<MemoryWorld::Process>(ranks);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < ranks; ++rank)
    worlds.push_back(
        std::make_unique<MemoryWorld>(process, rank, [](std::shared_ptr<Group> group, int place) {
          return std::make_unique<MemoryCommunicator>(std::move(group), place);
        }));
  return worlds;
}

}  // namespace rehearse::kernels
