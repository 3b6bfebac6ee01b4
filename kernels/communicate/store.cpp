#include "kernels/communicate/store.h"

#include <algorithm>
#include <new>
#include <sstream>

#include "kernels/communicate/store_server.h"
#include "kernels/device.h"

namespace rehearse::kernels {

namespace {

Socket introduced(const Launched& self, double patience_s) {
  Socket socket = connect_to(self.host, self.port, patience_s);
  send_text(socket, std::to_string(self.rank));
  return socket;
}

void say(const Socket& socket, char what) {
  send_text(socket, std::string(1, what));
}

void leave_note(const Socket& socket, const std::string& key, const std::string& value) {
  say(socket, kPut);
  send_text(socket, key);
  send_text(socket, value);
}

void ask(const Socket& socket, const std::string& key) {
  say(socket, kGet);
  send_text(socket, key);
}

std::string answer_on(const Socket& socket) {
  const std::string answer = receive_text(socket);
  if (answer.empty()) throw DeviceError("rank 0 gave an empty answer");
  if (answer[0] != kThere) throw DeviceError(answer.substr(1));
  return answer.substr(1);
}

}  // namespace

Store::Store(const Launched& self, double patience_s) : self_(self), patience_s_(patience_s) {
  if (self_.rank == 0) {
    server_ = std::make_unique<StoreServer>(self_.port);
    self_.port = server_->port();
  }
  notes_ = introduced(self_, patience_s);
  notes_.allow_silence(patience_s);
  news_ = introduced(self_, patience_s);
  ask(news_, kEnd);  // here, not where it is waited for: the destructor speaks on this socket too
  listener_ = std::thread([this] { listen(); });
}

Store::~Store() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  for (const Socket* socket : {&notes_, &news_}) {
    try {
      say(*socket, kLeave);
    } catch (const DeviceError&) {
      // The run is over already.
    }
  }
  news_.shut();
  listener_.join();
}

void Store::listen() {
  std::string reason;
  try {
    reason = answer_on(news_);
  } catch (const DeviceError&) {
    reason = "rank 0 ended without a word";
  } catch (const std::bad_alloc&) {
    reason = "out of memory";
  }
  const std::lock_guard lock(mutex_);
  if (!leaving_) ended_ = reason;
}

void Store::put(const std::string& key, const std::string& value) {
  const std::lock_guard lock(talking_);
  leave_note(notes_, key, value);
}

std::string Store::get(const std::string& key) {
  const std::lock_guard lock(talking_);
  ask(notes_, key);
  return answer_on(notes_);
}

void Store::pulse(const std::string& stands_at) {
  const std::lock_guard lock(talking_);
  say(notes_, kPulse);
  send_text(notes_, stands_at);
}

std::vector<Store::Standing> Store::roll_call() {
  constexpr double kAnswer_s = 2;
  const std::lock_guard lock(talking_);
  notes_.allow_silence(kAnswer_s);
  say(notes_, kRoll);
  std::istringstream lines(answer_on(notes_));
  notes_.allow_silence(patience_s_);
  std::vector<Standing> ranks;
  for (Standing standing; lines >> standing.rank >> standing.silent_s;) {
    lines.ignore();  // the blank before a place, which may be none
    std::getline(lines, standing.at);
    ranks.push_back(standing);
  }
  std::sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return ranks;
}

std::string Store::own_address() const {
  return self_.rank == 0 ? self_.host : local_address_of(notes_);
}

// Through a connection of its own: the other one may be waiting for a note.
void Store::end(const std::string& reason) {
  const Socket socket = introduced(self_, 0);
  leave_note(socket, kEnd, reason.empty() ? "a rank gave up" : reason);
  say(socket, kLeave);
}

std::string Store::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

}  // namespace rehearse::kernels
