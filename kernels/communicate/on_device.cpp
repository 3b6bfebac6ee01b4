// Ranks as threads that share one device's memory. Messages are copies by the device, and one rank's streams
// wait for events of another's. Both operands must be known when an operation is put on a stream. The threads
// therefore meet at every operation, while the device continues.
#include <array>
#include <map>

#include "kernels/communicate/reduce.h"
#include "kernels/communicate/thread_world.h"

namespace rehearse::kernels {

namespace {

using Moment = std::shared_ptr<Event>;

// State that the members of one group share.
struct Group {
  explicit Group(const std::vector<int>& ranks)
      : meeting(monitor, static_cast<int>(ranks.size())), members(ranks.size()) {}

  struct Member {
    Tensor from, to;  // operands of the operation in flight
    std::array<Moment, 3>
        reached;  // its phases: operands are there, own part is made, nothing is read any more
  };
  struct Mail {
    Tensor from;
    Moment there, taken;
  };
  Monitor monitor;
  Barrier meeting;
  std::vector<Member> members;
  std::map<std::pair<int, int>, Mail> mail;  // by sender and receiver
};

class DeviceCommunicator : public Communicator {
 public:
  DeviceCommunicator(std::shared_ptr<Group> group, int rank, Device& device)
      : group_(std::move(group)), rank_(rank), device_(device) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->members.size()); }

  // Each rank sums its own part of all operands, then collects the other parts.
  void all_reduce(Stream& stream, const Tensor& from, const Tensor& to, Reduction reduction) override {
    require_contiguous(from, to, 1, 1);
    begin(stream, from, to);
    reduce_part(stream, part(to, rank_), part(to, rank_ + 1) - part(to, rank_),
                offset(to.data, part(to, rank_), to.type), reduction);
    reach(stream, 1);
    for (int peer = 0; peer < size(); ++peer) {
      const std::int64_t at = part(to, peer);
      copy(stream, offset(to.data, at, to.type), offset(member(peer).to.data, at, to.type),
           part(to, peer + 1) - at, to.type);
    }
    reach(stream, 2);
  }

  void all_gather(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, size(), 1);
    begin(stream, from, to);
    for (int peer = 0; peer < size(); ++peer)
      copy(stream, offset(to.data, peer * from.elements(), to.type), member(peer).from.data, from.elements(),
           to.type);
    reach(stream, 2);
  }

  void reduce_scatter(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, size());
    begin(stream, from, to);
    reduce_part(stream, rank_ * to.elements(), to.elements(), static_cast<std::byte*>(to.data),
                Reduction::sum);
    reach(stream, 2);
  }

  void all_to_all(Stream& stream, const Tensor& from, const Tensor& to) override {
    require_contiguous(from, to, 1, 1);
    if (from.elements() % size() != 0) throw DeviceError("an all-to-all needs equal parts");
    begin(stream, from, to);
    const std::int64_t share = from.elements() / size();
    for (int peer = 0; peer < size(); ++peer)
      copy(stream, offset(to.data, peer * share, to.type),
           offset(member(peer).from.data, rank_ * share, to.type), share, to.type);
    reach(stream, 2);
  }

  void broadcast(Stream& stream, const Tensor& tensor, int root) override {
    require_contiguous(tensor, tensor, 1, 1);
    begin(stream, tensor, tensor);
    copy(stream, tensor.data, member(root).from.data, tensor.elements(), tensor.type);
    reach(stream, 2);
  }

  void send(Stream& stream, const Tensor& from, int receiver) override {
    offer(stream, from, receiver);
    wait_until_taken(stream, receiver);
  }

  void receive(Stream& stream, const Tensor& to, int sender) override { take(stream, to, sender); }

  void send_receive(Stream& stream, const Tensor& from, int receiver, const Tensor& to, int sender) override {
    offer(stream, from, receiver);
    take(stream, to, sender);
    wait_until_taken(stream, receiver);
  }

 private:
  Group::Member& member(int peer) { return group_->members[static_cast<std::size_t>(peer)]; }
  // First element of a rank's part.
  std::int64_t part(const Tensor& tensor, int peer) const { return tensor.elements() * peer / size(); }

  static void copy(Stream& stream, void* to, const void* from, std::int64_t elements, Type type) {
    if (to != from) stream.copy(to, from, static_cast<std::size_t>(elements) * bytes_of(type));
  }

  void begin(Stream& stream, const Tensor& from, const Tensor& to) {
    member(rank_).from = from;
    member(rank_).to = to;
    reach(stream, 0);
  }

  // Work put after this call runs when the streams of all members have reached the phase.
  void reach(Stream& stream, std::size_t phase) {
    member(rank_).reached[phase] = stream.record();
    group_->meeting.arrive();
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank_) stream.wait(member(peer).reached[phase]);
  }

  // Reduces elements from `first` on of all operands. `to` may be part of this rank's own operand, which is
  // therefore read first.
  void reduce_part(Stream& stream, std::int64_t first, std::int64_t count, std::byte* to,
                   Reduction reduction) {
    if (count == 0) return;
    const auto operand = [&](int turn) {
      const Tensor& from = member((rank_ + turn) % size()).from;
      return Tensor(offset(from.data, first, from.type), from.type, 1, count);
    };
    const Tensor result(to, member(rank_).from.type, 1, count);
    if (reduction == Reduction::maximum) return take_maximum(stream, operand, result);
    Tensor sum = operand(0);
    if (size() == 1) copy(stream, to, sum.data, count, sum.type);
    for (int turn = 1; turn < size(); ++turn) {
      Add add;
      add.inputs = {sum, operand(turn)};
      add.output = sum = result;
      stream.launch(add);
    }
  }

  // Computes the maximum over the columns of an fp32 matrix: one operand a column, and the result as the
  // last.
  template <typename Operand>
  void take_maximum(Stream& stream, const Operand& operand, const Tensor& result) {
    const std::int64_t rows = result.elements(), ranks = size();
    const auto bytes = static_cast<std::size_t>(rows * (ranks + 1)) * sizeof(float);
    if (columns_.empty() || columns_.back().bytes() < bytes) columns_.emplace_back(device_, bytes);
    const Tensor matrix(columns_.back().data(), Type::fp32, rows, ranks);
    const Tensor largest(offset(matrix.data, rows * ranks, Type::fp32), Type::fp32, 1, rows);
    for (int turn = 0; turn < size(); ++turn) {
      Tensor column = operand(turn);
      column.rows = rows;
      column.columns = column.stride = 1;
      stream.launch(Cast{column, matrix.slice(turn, 1)});
    }
    stream.launch(LossMaximum{matrix, largest});
    stream.launch(Cast{largest, result});
  }

  Group::Mail& mail_between(int sender, int receiver) {
    Group::Mail* mail = nullptr;
    group_->monitor.change_quietly([&] { mail = &group_->mail[{sender, receiver}]; });
    return *mail;
  }

  void offer(Stream& stream, const Tensor& from, int receiver) {
    Group::Mail& mail = mail_between(rank_, receiver);
    const Moment there = stream.record();
    group_->monitor.change([&] { mail = {from, there, nullptr}; });
  }

  void take(Stream& stream, const Tensor& to, int sender) {
    Group::Mail& mail = mail_between(sender, rank_);
    group_->monitor.wait_for([&] { return mail.there && !mail.taken; });
    require_contiguous(mail.from, to, 1, 1);
    stream.wait(mail.there);
    copy(stream, to.data, mail.from.data, to.elements(), to.type);
    const Moment taken = stream.record();
    group_->monitor.change([&] { mail.taken = taken; });
  }

  void wait_until_taken(Stream& stream, int receiver) {
    Group::Mail& mail = mail_between(rank_, receiver);
    group_->monitor.wait_for([&] { return mail.taken != nullptr; });
    stream.wait(mail.taken);
    group_->monitor.change([&] { mail = {}; });
  }

  std::shared_ptr<Group> group_;
  int rank_;
  Device& device_;
  std::vector<Buffer> columns_;  // of take_maximum(); the last is in use, others may still be read
};

}  // namespace

std::vector<std::unique_ptr<World>> open_device_worlds(const std::vector<Device*>& devices) {
  using DeviceWorld = ThreadWorld<Group>;
  const auto ranks = static_cast<int>(devices.size());
  const auto process = std::make_shared<DeviceWorld::Process>(ranks);
  std::vector<std::unique_ptr<World>> worlds;
  for (int rank = 0; rank < ranks; ++rank) {
    Device& device = *devices[static_cast<std::size_t>(rank)];
    worlds.push_back(
        std::make_unique<DeviceWorld>(process, rank, [&device](std::shared_ptr<Group> group, int place) {
          return std::make_unique<DeviceCommunicator>(std::move(group), place, device);
        }));
  }
  return worlds;
}

}  // namespace rehearse::kernels
