#include "kernels/communicate/store.h"

#include <poll.h>

#include <algorithm>
#include <new>
#include <sstream>

#include "kernels/communicate/store_server.h"

namespace rehearse::kernels {

namespace {

constexpr double kGrace_s = 5;  // added to timeouts: rank 0's server, which names missing ranks, fails first

}  // namespace

Store::Store(const Launched& self, double timeout_s, const Job& job) : self_(self), timeout_s_(timeout_s) {
  if (self_.rank == 0) serve(job);
  enter(job, timeout_s);
  thread_ = std::thread([this] { listen(); });
}

// The port may already belong to another rank 0, of this job or of another. Its answer tells which.
void Store::serve(const Job& job) {
  constexpr double kAnswer_s = 1;
  try {
    server_ = std::make_unique<StoreServer>(self_.port, hello_of(self_, job), timeout_s_);
    self_.port = server_->port();
  } catch (const PortInUse& in_use) {
    try {
      enter(job, kAnswer_s);
    } catch (const Refused&) {
      throw;
    } catch (const DeviceError&) {
      // Another program.
    }
    throw DeviceError(std::string("rank 0: ") + in_use.what() + "; another MASTER_PORT may be free");
  }
}

void Store::enter(const Job& job, double timeout_s) {
  Answered answered =
      call(self_.host, self_.port, write_hello(hello_of(self_, job)), {kThere, kEnded, kRefused}, timeout_s);
  const std::string rest = answered.answer.substr(1);
  if (answered.answer[0] == kRefused) throw Refused(rest);
  if (answered.answer[0] == kEnded) throw DeviceError(rest);
  token_ = rest;
  socket_.emplace(std::move(answered.socket));
}

Store::~Store() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
  }
  try {
    say(kLeave, "");
  } catch (const DeviceError&) {
    // The run is over already.
  }
  socket_->socket().shut();
  thread_.join();
}

void Store::listen() {
  std::string reason;
  try {
    while (true) {
      while (const auto message = socket_->next()) take(*message);
      pollfd end = {socket_->socket().descriptor(), POLLIN, 0};
      poll(&end, 1, socket_->unfinished_s() > 0 ? kAskMilliseconds : -1);
      if (socket_->unfinished_s() > timeout_s_)
        throw DeviceError("rank 0 stopped in the middle of a message");
    }
  } catch (const DeviceError&) {
    reason = "rank 0 ended without a word";
  } catch (const std::bad_alloc&) {
    reason = "out of memory";
  }
  const std::lock_guard lock(mutex_);
  if (!leaving_ && ended_.empty()) ended_ = reason;
  changed_.notify_all();
}

void Store::take(const std::string& message) {
  const char letter = message.empty() ? '\0' : message[0];
  const std::size_t line = message.find('\n');
  const std::lock_guard lock(mutex_);
  if (letter == kThere && line != std::string::npos) {
    answers_[message.substr(1, line - 1)] = message.substr(line + 1);
  } else if ((letter == kEnded || letter == kRefused) && ended_.empty()) {
    ended_ = message.substr(1);
    refused_ = letter == kRefused;
  }
  changed_.notify_all();
}

void Store::say(char what, const std::string& rest) {
  const std::lock_guard lock(sending_);
  socket_->send(what + rest, Deadline(timeout_s_));
}

// Sends `what` with the key, and waits for the note.
std::string Store::ask(char what, const std::string& key, const std::string& note, double wait_s) {
  say(what, key);
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, std::chrono::duration<double>(wait_s),
                    [&] { return answers_.contains(note) || !ended_.empty(); });
  if (const auto found = answers_.find(note); found != answers_.end()) return found->second;
  if (refused_) throw Refused(ended_);
  throw DeviceError(ended_.empty() ? "another rank did not come in time" : ended_);
}

void Store::wait_for_all() {
  ask(kGet, kAllAreHere, kAllAreHere, timeout_s_ + kGrace_s);
}

void Store::put(const std::string& key, const std::string& value) {
  say(kPut, key + "\n" + value);
}

std::string Store::get(const std::string& key) {
  return ask(kGet, key, key, timeout_s_);
}

void Store::pulse(const std::string& stands_at) {
  say(kPulse, stands_at);
}

std::vector<Store::Standing> Store::roll_call() {
  constexpr double kAnswer_s = 2;
  {
    const std::lock_guard lock(mutex_);
    answers_.erase(kRollCall);  // from the previous call
  }
  std::istringstream lines(ask(kRoll, "", kRollCall, kAnswer_s));
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
  return self_.rank == 0 ? self_.host : local_address_of(socket_->socket());
}

void Store::end(const std::string& reason) {
  say(kEnded, reason.empty() ? "a rank gave up" : reason);
}

std::string Store::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool Store::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace rehearse::kernels
