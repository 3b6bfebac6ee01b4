// Requests are handed over when they are whole, answers when they are ready, and nobody waits for those who
// send or read slowly, or not at all.
#include "studio/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <list>

namespace rehearse::studio {
namespace {

TEST(RequestSize, IsHeadAndBody) {
  EXPECT_EQ(request_size("GET / HTTP/1.1\r\nHost: a\r\n"), 0U);
  const std::string head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(request_size(head + "more"), head.size());
  const std::string post = "POST /run HTTP/1.1\r\ncontent-LENGTH:  12\r\n\r\n";
  EXPECT_EQ(request_size(post), post.size() + 12);
}

TEST(RequestSize, IsTheHeadsWhereTheLengthIsNone) {
  for (const char* length : {"-1", "", "x", "99999999999999999999999999"}) {
    const std::string head = std::string("POST / HTTP/1.1\r\nContent-Length: ") + length + "\r\n\r\n";
    EXPECT_EQ(request_size(head), head.size()) << length;
  }
  const std::string body_says = "POST / HTTP/1.1\r\n\r\n\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(request_size(body_says), std::string("POST / HTTP/1.1\r\n\r\n").size());
}

// Both ends of a connection.
struct Connection {
  Connection() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(ends[0]); }
  void say(const std::string& text) const {
    EXPECT_EQ(send(ends[0], text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  // Until the other end closes, and whether it did so in time.
  std::string answer() const {
    const timeval limit = {20, 0};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    std::string text;
    std::array<char, 4096> some;
    while (true) {
      const ssize_t count = read(ends[0], some.data(), some.size());
      if (count <= 0) return count == 0 ? text : text + "(still open)";
      text.append(some.data(), static_cast<std::size_t>(count));
    }
  }
  std::array<int, 2> ends{};
};

class AtConnections : public testing::Test {
 protected:
  struct Request {
    int socket = -1;
    std::string bytes;
  };
  Request next() {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(20), [this] { return !requests_.empty(); });
    if (requests_.empty()) return {};
    Request first = requests_.front();
    requests_.pop_front();
    return first;
  }
  std::mutex mutex_;
  std::condition_variable came_;
  std::list<Request> requests_;
  Connections connections_{{100, 10'000'000, 3, 0.5}, [this](int socket, const std::string& bytes) {
                             const std::lock_guard lock(mutex_);
                             requests_.push_back({socket, bytes});
                             came_.notify_all();
                           }};
};

constexpr const char* kGet = "GET / HTTP/1.1\r\n\r\n";

TEST_F(AtConnections, ARequestInPiecesComesWholeAndItsAnswerCloses) {
  const Connection connection;
  connections_.admit(connection.ends[1]);
  connection.say("POST / HTTP/1.1\r\nContent-Le");
  connection.say("ngth: 4\r\n\r\nab");
  connection.say("cd");
  const Request request = next();
  EXPECT_EQ(request.bytes, "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd");
  connections_.answer(request.socket, "fine");
  EXPECT_EQ(connection.answer(), "fine");
}

TEST_F(AtConnections, ASlowOneHoldsUpNobodyAndGoes) {
  const Connection slow, quick;
  connections_.admit(slow.ends[1]);
  slow.say("GET ");
  connections_.admit(quick.ends[1]);
  quick.say(kGet);
  EXPECT_EQ(next().bytes, kGet);
  EXPECT_EQ(slow.answer(), "");
}

TEST_F(AtConnections, OneWhoReadsNothingHoldsUpNobodyAndGoes) {
  const Connection deaf, quick;
  for (const Connection* connection : {&deaf, &quick}) {
    connections_.admit(connection->ends[1]);
    connection->say(kGet);
    connections_.answer(next().socket, std::string(connection == &deaf ? 5'000'000 : 5, 'x'));
  }
  EXPECT_EQ(quick.answer(), "xxxxx");
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LT(deaf.answer().size(), 5'000'000U) << "what it had not taken in time is lost";
}

TEST_F(AtConnections, AnswersThatNobodyTakesFillNoMemory) {
  std::list<Connection> deaf(3);
  for (const Connection& connection : deaf) {
    connections_.admit(connection.ends[1]);
    connection.say(kGet);
    connections_.answer(next().socket, std::string(9'000'000, 'x'));
  }
  EXPECT_LT(deaf.front().answer().size(), 9'000'000U);
}

TEST_F(AtConnections, OneTooManyIsToldToComeAgain) {
  std::array<Connection, 4> connections;
  for (const Connection& connection : connections) connections_.admit(connection.ends[1]);
  EXPECT_THAT(connections[0].answer(),
              testing::AllOf(testing::HasSubstr(" 503 "), testing::HasSubstr("Retry-After")));
  connections[3].say(kGet);
  EXPECT_EQ(next().bytes, kGet);
}

TEST_F(AtConnections, WhoIsAnsweredAlreadyTakesNoPlace) {
  std::list<Connection> lingering(50);
  for (const Connection& connection : lingering) {
    connections_.admit(connection.ends[1]);
    connection.say(kGet);
    const Request request = next();
    EXPECT_EQ(request.bytes, kGet);
    connections_.answer(request.socket, "fine");
  }
  for (const Connection& connection : lingering) EXPECT_EQ(connection.answer(), "fine");
}

TEST_F(AtConnections, WhatIsTooLongIsHandedOverToBeRefused) {
  const Connection announced, endless;
  connections_.admit(announced.ends[1]);
  announced.say("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  const Request request = next();
  EXPECT_EQ(request.bytes, "POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  connections_.answer(request.socket, "too long");
  announced.say("some of it");
  EXPECT_EQ(announced.answer(), "too long");
  connections_.admit(endless.ends[1]);
  endless.say(std::string(101, 'x'));
  EXPECT_EQ(next().bytes, std::string(101, 'x'));
}

}  // namespace
}  // namespace rehearse::studio
