#include "nccl_hub.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>
#include <thread>

#include "nccl_message.h"

namespace cuda_on_cpu {

namespace {

struct Rank {
  int socket = -1;  // -1 before it has come, and when it has gone
  std::uint64_t gpu = 0;
  std::optional<Message> calls;  // that it waits for
  std::vector<bool> met;         // of these, who has found its other end
  Message answer;
};

class Hub {
 public:
  explicit Hub(int listening) : listening_(listening) {}
  ~Hub() { close(listening_); }

  void serve() {
    while (meet()) {
    }
    while (std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.socket >= 0; })) {
      listen();
      while (bring_together()) {
      }
      if (is_locked_up()) fail(ncclInvalidUsage, "the calls of all ranks wait for each other: " + standing());
    }
  }

 private:
  // Takes one rank in; false when all are here.
  bool meet() {
    const int socket = accept(listening_, nullptr, nullptr);
    Hello hello;
    if (socket < 0 || !hear(socket, &hello, sizeof hello)) return true;
    ranks_.resize(static_cast<std::size_t>(hello.size));
    Rank& rank = ranks_.at(static_cast<std::size_t>(hello.rank));
    const bool same_gpu = std::any_of(ranks_.begin(), ranks_.end(), [&](const Rank& other) {
      return other.socket >= 0 && other.gpu == hello.gpu;
    });
    if (same_gpu) failure_ = {ncclInvalidUsage, "two ranks have the same GPU", {}, {}};
    rank.socket = socket;
    rank.gpu = hello.gpu;
    if (++here_ < hello.size) return true;
    for (const Rank& each : ranks_) say(each.socket, failure_);
    return false;
  }

  void listen() {
    std::vector<pollfd> sockets;
    for (const Rank& rank : ranks_) sockets.push_back({rank.socket, POLLIN, 0});
    poll(sockets.data(), sockets.size(), -1);
    for (std::size_t r = 0; r < ranks_.size(); ++r)
      if (sockets[r].revents != 0) hear_from(r);
  }

  // A rank that leaves in good order says so with a message without calls.
  void hear_from(std::size_t number) {
    Rank& rank = ranks_[number];
    Message message;
    const bool lives = hear(rank.socket, message);
    if (!lives || message.parts.empty()) {
      close(rank.socket);
      rank.socket = -1;
      rank.calls.reset();
      if (!lives) fail(ncclRemoteError, "rank " + std::to_string(number) + " is gone");
      return;
    }
    if (failure_.state != ncclSuccess) {
      say(rank.socket, failure_);
      return;
    }
    rank.met.assign(message.parts.size(), false);
    rank.answer = {ncclSuccess, "", {}, std::vector<Bytes>(message.parts.size())};
    rank.calls = std::move(message);
  }

  // Answers whom it can; false when there is nobody.
  bool bring_together() {
    for (std::size_t from = 0; from < ranks_.size(); ++from) send_from(from);
    const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
      return rank.calls && rank.calls->parts.front().is_collective();
    });
    if (all) run_collective();
    bool answered = false;
    for (auto rank = ranks_.rbegin(); rank != ranks_.rend();
         ++rank) {  // the hub's own process, which may end, last
      if (!rank->calls || std::find(rank->met.begin(), rank->met.end(), false) != rank->met.end()) continue;
      rank->calls.reset();
      say(rank->socket, rank->answer);
      answered = true;
    }
    return answered;
  }

  void send_from(std::size_t number) {
    Rank& from = ranks_[number];
    if (!from.calls) return;
    for (std::size_t i = 0; i < from.calls->parts.size(); ++i) {
      const Part& sent = from.calls->parts[i];
      Rank& to = ranks_.at(static_cast<std::size_t>(sent.peer));
      if (sent.kind != Kind::send || from.met[i] || !to.calls) continue;
      for (std::size_t k = 0; k < to.calls->parts.size(); ++k) {
        const Part& received = to.calls->parts[k];
        if (received.kind != Kind::receive || to.met[k] || received.peer != static_cast<int>(number))
          continue;
        if (received.count != sent.count || received.type != sent.type)
          return fail(ncclInvalidUsage, "a send and its receive differ in size: " + standing());
        to.answer.data[k] = std::move(from.calls->data[i]);
        from.met[i] = to.met[k] = true;
        break;
      }
    }
  }

  void run_collective() {
    const Part part = ranks_.front().calls->parts.front();
    std::vector<const Bytes*> operands;
    Bytes joined;
    for (Rank& rank : ranks_) {
      if (!(rank.calls->parts.front() == part)) return;  // is_locked_up() will tell
      operands.push_back(&rank.calls->data.front());
      joined.insert(joined.end(), operands.back()->begin(), operands.back()->end());
    }
    if (part.kind == Kind::all_reduce || part.kind == Kind::reduce_scatter) joined = reduced(operands, part);
    if (part.kind == Kind::broadcast) joined = *operands.at(static_cast<std::size_t>(part.peer));
    const std::size_t share = joined.size() / ranks_.size();
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const auto first = joined.begin() + static_cast<std::ptrdiff_t>(r * share);
      ranks_[r].answer.data.front() = part.kind == Kind::reduce_scatter
                                          ? Bytes(first, first + static_cast<std::ptrdiff_t>(share))
                                          : joined;
      ranks_[r].met.front() = true;
    }
  }

  // Real ones would wait for ever.
  bool is_locked_up() const {
    return failure_.state == ncclSuccess &&
           std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.calls.has_value(); });
  }

  std::string standing() const {
    std::ostringstream text;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].calls) continue;
      text << "rank " << r << ":";
      for (const Part& part : ranks_[r].calls->parts)
        text << " " << name_of(part.kind) << " of " << part.count << " of type " << part.type << " with "
             << part.peer << ";";
    }
    return text.str();
  }

  void fail(ncclResult_t state, const std::string& reason) {
    if (failure_.state != ncclSuccess) return;
    if (state == ncclInvalidUsage) std::fprintf(stderr, "NCCL on the CPU: %s\n", reason.c_str());
    failure_ = {state, reason, {}, {}};
    for (Rank& rank : ranks_) {
      if (rank.calls) say(rank.socket, failure_);
      rank.calls.reset();
    }
  }

  int listening_;
  int here_ = 0;
  std::vector<Rank> ranks_;
  Message failure_;  // that ended it
};

// A name that is no file, and goes with its socket.
sockaddr_un address_of(const ncclUniqueId& id) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path + 1, id.internal, sizeof address.sun_path - 2);
  return address;
}

}  // namespace

ncclUniqueId start_hub() {
  constexpr int kWaiting = 128;
  static std::random_device random;
  ncclUniqueId id = {};
  std::snprintf(id.internal, sizeof id.internal, "nccl-on-cpu-%d-%08x%08x", static_cast<int>(getpid()),
                random(), random());
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(id);
  if (bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listening, kWaiting) != 0)
    std::perror("NCCL on the CPU");
  std::thread([listening] { Hub(listening).serve(); }).detach();
  return id;
}

int connect_to_hub(const ncclUniqueId& id) {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(id);
  if (connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return made;
  close(made);
  return -1;
}

}  // namespace cuda_on_cpu
