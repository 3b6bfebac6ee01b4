#include "kernels/communicate/store_server.h"

#include <poll.h>

#include <algorithm>
#include <random>
#include <sstream>

namespace rehearse::kernels {

namespace {

constexpr int kPollMilliseconds = 20;
constexpr double kLateRanks_s = 2;  // how long a refused run waits to tell ranks that have not arrived yet

const char* const kOneJob = "; nearest legal: the same program, flags and files on every rank";

// Connections between ranks start with it, so that ranks of another run are recognised.
std::string random_token() {
  std::random_device random;
  std::ostringstream text;
  for (int i = 0; i < 4; ++i) text << std::hex << random();
  return text.str();
}

std::string named(const std::string& job_id) {
  return job_id.empty() ? "a job without an id" : "job " + job_id;
}

}  // namespace

StoreServer::StoreServer(int port, Hello own, double timeout_s, double peace_s)
    : own_(std::move(own)),
      size_(std::stoi(own_.job.front().value)),
      timeout_s_(timeout_s),
      peace_s_(peace_s),
      listener_(port),
      token_(random_token()),
      beginning_(timeout_s),
      thread_([this] { work(); }) {}

StoreServer::~StoreServer() {
  closing_ = true;
  thread_.join();
}

void StoreServer::work() {
  std::optional<Deadline> peace;
  while (true) {
    if (closing_ && !peace) peace.emplace(peace_s_);
    if (peace && is_over(*peace)) return;
    std::vector<pollfd> ends;
    for (const Client& client : clients_)
      ends.push_back({client.socket.socket().descriptor(), client.socket.awaits(), 0});
    listener_.add_to(ends);
    poll(ends.data(), ends.size(), kPollMilliseconds);
    auto end = ends.begin();
    for (auto client = clients_.begin(); client != clients_.end(); ++end) {
      const auto next = std::next(client);
      serve(client, end->revents != 0);
      client = next;
    }
    for (Listener::Caller& caller : listener_.answer()) admit(std::move(caller));
    watch_the_beginning();
  }
}

bool StoreServer::is_over(const Deadline& peace) const {
  const bool others_come = !end_.empty() && end_[0] == kRefused && static_cast<int>(seen_.size()) < size_;
  const bool waits = others_come && peace_s_ - peace.left_s() < kLateRanks_s;
  return peace.has_passed() || (clients_.empty() && !waits);
}

// Returns whether a message has arrived. A client that disconnects without kLeave, or stops in the middle of
// a message, ends the run.
bool StoreServer::serve(Clients::iterator client, bool has_come) {
  try {
    const auto message = has_come && client->socket.flush() ? client->socket.next() : std::nullopt;
    if (message) take(*client, *message);
    if (client->socket.unfinished_s() <= timeout_s_) return message.has_value();
    end(kEnded, "rank " + std::to_string(client->rank) + " stopped in the middle of a message");
  } catch (const DeviceError&) {
    if (!client->leaves) end(kEnded, "rank " + std::to_string(client->rank) + " ended without a word");
  }
  clients_.erase(client);
  return false;
}

void StoreServer::take(Client& client, const std::string& message) {
  const char letter = message.empty() ? '\0' : message[0];
  const std::string rest = message.empty() ? "" : message.substr(1);
  if (letter == kPut) {
    const std::size_t line = std::min(rest.find('\n'), rest.size());
    put(rest.substr(0, line), rest.substr(std::min(line + 1, rest.size())));
  } else if (letter == kGet) {
    client.wanted.insert(rest);
    if (const auto note = notes_.find(rest); note != notes_.end()) put(rest, note->second);
  } else if (letter == kPulse) {
    client.stands_at = rest;
    client.pulsed = std::chrono::steady_clock::now();
  } else if (letter == kRoll) {
    client.socket.put(kThere + kRollCall + "\n" + roll());
  } else if (letter == kLeave) {
    client.leaves = true;
  } else if (letter == kEnded) {
    end(kEnded, rest);
  } else {
    throw DeviceError("something that is no rank speaks here");
  }
}

void StoreServer::put(const std::string& key, const std::string& value) {
  notes_.try_emplace(key, value);
  for (Client& client : clients_)
    if (client.wanted.erase(key) > 0) client.socket.put(kThere + key + "\n" + notes_.at(key));
}

void StoreServer::admit(Listener::Caller caller) {
  const std::optional<Hello> hello = read_hello(caller.first);
  if (!hello) return;
  const std::string fault = fault_of(*hello);
  if (fault.empty() && end_.empty()) {
    caller.socket.put(kThere + token_);
    clients_.push_back({std::move(caller.socket), hello->rank, hello->process, {}, false, {}, {}});
    seen_.insert(hello->rank);
    if (static_cast<int>(clients_.size()) < size_ || all_are_here_) return;
    all_are_here_ = true;
    put(kAllAreHere, "");
    return;
  }
  try {
    caller.socket.put(fault.empty() ? end_ : kRefused + fault);
    caller.socket.flush();
  } catch (const DeviceError&) {
    // It has gone.
  }
}

// Why a process is not a rank of this run, or "". The run ends for all ranks where nobody can tell which of
// them is right. A rank of another job does not end it, nor does a late rank whose job differs.
std::string StoreServer::fault_of(const Hello& hello) {
  if (hello.job_id != own_.job_id)
    return "the ranks of one job meet at a port (rank " + std::to_string(hello.rank) + " is of " +
           named(hello.job_id) + ", at port " + std::to_string(port()) + " meets " + named(own_.job_id) +
           "); nearest legal: another MASTER_PORT for each job";
  std::string by, fault;
  const std::string difference = difference_between(hello, own_);
  const bool taken = is_taken(hello, by);
  if (!difference.empty())
    fault = "all ranks run the same job (" + difference + ")" + kOneJob;
  else if (taken)
    fault = "every rank is one process (rank " + std::to_string(hello.rank) + " is " + by + " and " +
            hello.process + "); nearest legal: a RANK of its own for each, from 0 to " +
            std::to_string(size_ - 1);
  seen_.insert(hello.rank);
  if (!fault.empty() && (difference.empty() || !all_are_here_)) end(kRefused, fault);
  return fault;
}

// Whether a connected process has this rank. The message of a process that has left may not have been read
// yet.
bool StoreServer::is_taken(const Hello& hello, std::string& by) {
  // The server's own rank, which may come to it after the other one.
  by = own_.process;
  if (hello.rank == own_.rank && hello.process != own_.process) return true;
  while (true) {
    const auto client = std::find_if(clients_.begin(), clients_.end(),
                                     [&](const Client& other) { return other.rank == hello.rank; });
    if (client == clients_.end()) return false;
    by = client->process;
    const std::size_t before = clients_.size();
    if (!serve(client, true) && clients_.size() == before) return true;
  }
}

void StoreServer::watch_the_beginning() {
  const bool misses_a_rank = !all_are_here_ && end_.empty();
  if (misses_a_rank && listener_.is_full())
    end(kEnded, "rank 0 has no file descriptor left for another rank; ulimit -n raises their number");
  if (!misses_a_rank || !beginning_.has_passed()) return;
  constexpr std::size_t kMaxNamed = 8;
  std::vector<int> missing;
  for (int rank = 0; rank < size_ && missing.size() < kMaxNamed; ++rank)
    if (!seen_.contains(rank)) missing.push_back(rank);
  std::ostringstream text;
  text << (missing.size() > 1 ? "ranks " : "rank ");
  for (std::size_t i = 0; i < missing.size(); ++i) text << (i > 0 ? ", " : "") << missing[i];
  if (missing.size() == kMaxNamed) text << " and maybe more";
  text << " of " << size_ << " did not come within " << timeout_s_ << " s";
  end(kEnded, text.str());
}

// The first reason stays.
void StoreServer::end(char letter, const std::string& reason) {
  if (!end_.empty()) return;
  end_ = letter + reason;
  for (Client& client : clients_) client.socket.put(end_);
}

std::string StoreServer::roll() const {
  std::ostringstream lines;
  const auto now = std::chrono::steady_clock::now();
  for (const Client& client : clients_) {
    if (!client.pulsed) continue;
    lines << client.rank << ' ' << std::chrono::duration<double>(now - *client.pulsed).count() << ' '
          << client.stands_at << '\n';
  }
  return lines.str();
}

}  // namespace rehearse::kernels
