// Requests are handed over when they are whole, and nobody waits for those that are not.
#include "studio/lobby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <condition_variable>

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
  bool ends_within_s(int seconds) const {
    const timeval limit = {seconds, 0};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    char byte = 0;
    return read(ends[0], &byte, 1) == 0;
  }
  std::array<int, 2> ends{};
};

class AtLobby : public testing::Test {
 protected:
  std::string next() {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(20), [this] { return !requests_.empty(); });
    if (requests_.empty()) return "";
    std::string first = requests_.front();
    requests_.pop_front();
    return first;
  }
  std::mutex mutex_;
  std::condition_variable came_;
  std::list<std::string> requests_;
  Lobby lobby_{{100, 3, 0.5}, [this](int socket, const std::string& bytes) {
                 close(socket);
                 const std::lock_guard lock(mutex_);
                 requests_.push_back(bytes);
                 came_.notify_all();
               }};
};

TEST_F(AtLobby, ARequestInPiecesComesWhole) {
  const Connection connection;
  lobby_.admit(connection.ends[1]);
  connection.say("POST / HTTP/1.1\r\nContent-Le");
  connection.say("ngth: 4\r\n\r\nab");
  connection.say("cd");
  EXPECT_EQ(next(), "POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd");
}

TEST_F(AtLobby, ASlowOneHoldsUpNobodyAndGoes) {
  const Connection slow, quick;
  lobby_.admit(slow.ends[1]);
  slow.say("GET ");
  lobby_.admit(quick.ends[1]);
  quick.say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(next(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(slow.ends_within_s(20));
}

TEST_F(AtLobby, OneTooManyTakesThePlaceOfTheFirst) {
  std::array<Connection, 4> connections;
  for (const Connection& connection : connections) lobby_.admit(connection.ends[1]);
  EXPECT_TRUE(connections[0].ends_within_s(20));
  connections[3].say("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(next(), "GET / HTTP/1.1\r\n\r\n");
}

TEST_F(AtLobby, WhatIsTooLongIsHandedOverToBeRefused) {
  const Connection announced, endless;
  lobby_.admit(announced.ends[1]);
  announced.say("POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(next(), "POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n");
  lobby_.admit(endless.ends[1]);
  endless.say(std::string(101, 'x'));
  EXPECT_EQ(next(), std::string(101, 'x'));
}

}  // namespace
}  // namespace rehearse::studio
