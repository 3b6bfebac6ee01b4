#include "kernels/communicate/store_server.h"

#include <poll.h>
#include <sys/socket.h>

#include <sstream>
#include <vector>

#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

constexpr int kPollMilliseconds = 20;
constexpr double kSentence_s = 10;  // for the rest of a message that has begun

}  // namespace

StoreServer::StoreServer(int port, double peace_s)
    : peace_s_(peace_s), listening_(listen_at(port)), thread_([this] { work(); }) {}

StoreServer::~StoreServer() {
  closing_ = true;
  thread_.join();
}

void StoreServer::work() {
  Clock::time_point closing_since = {};
  while (true) {
    if (closing_ && closing_since == Clock::time_point{}) closing_since = Clock::now();
    if (closing_ && (clients_.empty() ||
                     std::chrono::duration<double>(Clock::now() - closing_since).count() > peace_s_)) {
      return;
    }
    std::vector<pollfd> ends = {{listening_.descriptor(), POLLIN, 0}};
    for (const Client& client : clients_) ends.push_back({client.socket.descriptor(), POLLIN, 0});
    if (poll(ends.data(), ends.size(), kPollMilliseconds) <= 0) continue;
    auto client = clients_.begin();
    for (std::size_t i = 1; i < ends.size(); ++i) {
      const auto next = std::next(client);
      if (ends[i].revents != 0) {
        try {
          serve(*client);
        } catch (const DeviceError&) {
          drop(client);
        }
      }
      client = next;
    }
    if (ends[0].revents != 0) {
      Socket socket(accept(listening_.descriptor(), nullptr, nullptr));
      socket.allow_silence(kSentence_s);
      clients_.emplace_back().socket = std::move(socket);
    }
    answer_all();
  }
}

void StoreServer::serve(Client& client) {
  const std::string message = receive_text(client.socket);
  if (client.name.empty()) {
    client.name = message;
  } else if (message.size() == 1 && message[0] == kPut) {
    const std::string key = receive_text(client.socket);
    notes_.try_emplace(key, receive_text(client.socket));  // the first reason for the end stays
  } else if (message.size() == 1 && message[0] == kGet) {
    client.wanted = receive_text(client.socket);
  } else if (message.size() == 1 && message[0] == kPulse) {
    client.stands_at = receive_text(client.socket);
    client.pulsed = Clock::now();
  } else if (message.size() == 1 && message[0] == kRoll) {
    send_text(client.socket, std::string(1, kThere).append(roll()));
  } else if (message.size() == 1 && message[0] == kLeave) {
    client.leaves = true;
  } else {
    throw DeviceError("something that is no rank spoke at rank 0's port");
  }
}

std::string StoreServer::roll() const {
  std::ostringstream lines;
  for (const Client& client : clients_) {
    if (!client.pulsed) continue;
    const double silent_s = std::chrono::duration<double>(Clock::now() - *client.pulsed).count();
    lines << client.name << ' ' << silent_s << ' ' << client.stands_at << '\n';
  }
  return lines.str();
}

// A client that goes without leaving ends the run; who never said its rank was none.
void StoreServer::drop(std::list<Client>::iterator client) {
  if (!client->leaves && !client->name.empty()) {
    notes_.try_emplace(kEnd, "rank " + client->name + " ended without a word");
  }
  clients_.erase(client);
}

void StoreServer::answer_all() {
  const auto end = notes_.find(kEnd);
  for (auto client = clients_.begin(); client != clients_.end();) {
    const auto next = std::next(client);
    const auto note = notes_.find(client->wanted);
    const bool there = !client->wanted.empty() && note != notes_.end();
    if (there || (!client->wanted.empty() && end != notes_.end())) {
      client->wanted.clear();
      try {
        send_text(client->socket, std::string(1, there ? kThere : kEnded) + (there ? note : end)->second);
      } catch (const DeviceError&) {
        drop(client);
      }
    }
    client = next;
  }
}

}  // namespace rehearse::kernels
