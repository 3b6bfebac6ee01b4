// Requests are handed over when they are whole, and nobody waits for clients that send or read slowly, or not
// at all.
#include "studio/connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <optional>
#include <semaphore>
#include <thread>
#include <vector>

#include "tcp_client.h"

namespace rehearse::studio {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

constexpr const char* kGet = "GET / HTTP/1.1\r\n\r\n";
constexpr const char* kWait = "GET /wait HTTP/1.1\r\n\r\n";

std::string post(const std::string& body) {
  return "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

constexpr Limits kLimits = {.head_bytes = 1000,
                            .headers = 10,
                            .body_bytes = 100,
                            .answer_bytes = 10'000'000,
                            .connections = 3,
                            .requests = 4,
                            .threads = 4,
                            .time = milliseconds(500)};

constexpr Limits patient() {
  Limits limits = kLimits;
  limits.time = seconds(60);
  return limits;
}

// Answers "fine" and the request's body; to "x N" with N bytes. "/wait" waits for release().
class AtConnections : public testing::Test {
 protected:
  AtConnections() { start(kLimits); }
  ~AtConnections() override { finish(); }
  void start(const Limits& limits) {
    finish();
    connections_.emplace(0, limits, [this](const Request& request) {
      ++requests_;
      if (request.target() == "/wait") waiting_.acquire();
      Response response;
      const std::string& body = request.body();
      response.body() =
          body.starts_with("x ") ? std::string(std::stoul(body.substr(2)), 'x') : "fine " + body;
      return response;
    });
    port_ = connections_->port();
    thread_ = std::thread([this] { connections_->serve(); });
  }
  void finish() {
    if (!connections_) return;
    connections_->stop();
    thread_.join();
    connections_.reset();
  }
  void release(int requests) { waiting_.release(requests); }
  TcpClient client() const { return TcpClient(port_); }
  std::string answer_to(const std::string& request) const {
    const TcpClient quick = client();
    quick.say(request);
    return quick.answer();
  }
  void await_requests(int count) const {
    for (const auto begin = Clock::now(); requests_ < count && Clock::now() - begin < seconds(20);)
      std::this_thread::sleep_for(milliseconds(1));
    EXPECT_EQ(requests_, count);
  }

  std::atomic<int> requests_ = 0;
  std::counting_semaphore<> waiting_{0};
  std::optional<Connections> connections_;
  int port_ = 0;
  std::thread thread_;
};

TEST_F(AtConnections, ARequestInPiecesComesWholeAndItsAnswerCloses) {
  const TcpClient slow = client();
  for (const char* piece : {"POST / HTTP/1.1\r\nContent-Le", "ngth: 4\r\n\r\nab", "cd"}) {
    slow.say(piece);
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_THAT(slow.answer(), AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Connection: close\r\n"),
                                   HasSubstr("Content-Length: 9\r\n"), EndsWith("\r\n\r\nfine abcd")));
}

TEST_F(AtConnections, AHeadIsAnsweredWithTheLengthAlone) {
  EXPECT_THAT(answer_to("HEAD / HTTP/1.1\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 5\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(AtConnections, ASlowOneHoldsUpNobodyAndGoes) {
  const TcpClient slow = client();
  std::jthread sends([&](const std::stop_token& over) {
    while (!over.stop_requested() && slow.say("G")) std::this_thread::sleep_for(milliseconds(50));
  });
  EXPECT_THAT(answer_to(kGet), EndsWith("fine "));
  const auto begin = Clock::now();
  EXPECT_EQ(slow.answer(), "");
  EXPECT_LT(Clock::now() - begin, seconds(10));
}

TEST_F(AtConnections, OneWhoReadsNothingHoldsUpNobodyAndGoes) {
  const TcpClient deaf(port_, 65536);
  deaf.say(post("x 9000000"));
  await_requests(1);
  EXPECT_THAT(answer_to(post("meanwhile")), EndsWith("\r\n\r\nfine meanwhile"));
  std::this_thread::sleep_for(seconds(1));
  EXPECT_LT(deaf.answer().size(), 9'000'000U) << "what it had not taken in time is lost";
}

TEST_F(AtConnections, AnswersThatNobodyTakesFillNoMemory) {
  start(patient());
  std::list<TcpClient> deaf;
  for (int i = 0; i < 3; ++i) {
    deaf.emplace_back(port_, 65536);
    deaf.back().say(post("x 9000000"));
    await_requests(i + 1);
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_LT(deaf.front().answer().size(), 9'000'000U);
  EXPECT_GT(deaf.back().answer().size(), 9'000'000U) << "the newest is kept";
}

TEST_F(AtConnections, OneTooManyIsToldToComeAgain) {
  start(patient());
  std::list<TcpClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(client());
    std::this_thread::sleep_for(milliseconds(20));
  }
  EXPECT_THAT(clients.front().answer(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1\r\n")));
  clients.back().say(kGet);
  EXPECT_THAT(clients.back().answer(), EndsWith("fine "));
}

// Also where those before it wait for their answers.
TEST_F(AtConnections, TheNewestIsToldToComeAgainWhereAllOthersHaveAsked) {
  std::list<TcpClient> asked;
  for (int i = 0; i < 3; ++i) {
    asked.push_back(client());
    asked.back().say(kWait);
  }
  await_requests(3);
  EXPECT_THAT(answer_to(kGet), StartsWith("HTTP/1.1 503 "));
  release(3);
  for (const TcpClient& each : asked) EXPECT_THAT(each.answer(), EndsWith("fine "));
}

TEST_F(AtConnections, ARequestTooManyIsToldToComeAgain) {
  Limits one_thread = kLimits;
  one_thread.connections = 9;
  one_thread.requests = 2;
  one_thread.threads = 1;
  start(one_thread);
  const TcpClient computed = client(), waits = client();
  computed.say(kWait);
  await_requests(1);
  waits.say(kGet);
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_THAT(answer_to(kGet), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1\r\n")));
  release(1);
  for (const TcpClient* each : {&computed, &waits}) EXPECT_THAT(each->answer(), EndsWith("fine "));
}

TEST_F(AtConnections, WhoIsAnsweredAlreadyTakesNoPlace) {
  std::list<TcpClient> lingering;
  for (int i = 0; i < 50; ++i) {
    lingering.push_back(client());
    lingering.back().say(kGet);
    await_requests(i + 1);
  }
  for (const TcpClient& each : lingering) EXPECT_THAT(each.answer(), EndsWith("fine "));
}

TEST_F(AtConnections, WhatIsTooLongIsRefusedBeforeItIsWhole) {
  const TcpClient announced = client(), endless = client();
  announced.say("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n");
  announced.say("some of it");
  EXPECT_THAT(announced.answer(), StartsWith("HTTP/1.1 413 "));
  endless.say("GET / HTTP/1.1\r\nA: " + std::string(1000, 'x'));
  EXPECT_THAT(endless.answer(), StartsWith("HTTP/1.1 431 "));
  std::string headers;
  for (int i = 0; i < 9; ++i) headers += "a:b\r\n";
  EXPECT_THAT(answer_to("GET / HTTP/1.1\r\n" + headers + "a:b\r\na:b\r\n\r\n"), StartsWith("HTTP/1.1 431 "));
  EXPECT_EQ(requests_, 0);
  EXPECT_THAT(
      answer_to("POST / HTTP/1.1\r\nContent-Length: 100\r\n" + headers + "\r\n" + std::string(100, 'x')),
      StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(requests_, 1);
}

TEST_F(AtConnections, ABodyInChunksIsNotAwaited) {
  const TcpClient chunked = client();
  chunked.say("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_THAT(chunked.answer(), EndsWith("\r\n\r\nfine "));
}

TEST_F(AtConnections, WhatIsNoHttpIsRefused) {
  for (const char* request :
       {"\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999999\r\n\r\n"})
    EXPECT_THAT(answer_to(request), StartsWith("HTTP/1.1 400 ")) << request;
  EXPECT_EQ(requests_, 0);
}

// The system has forgotten the connection by the time that its answer is sent.
TEST_F(AtConnections, OneWhoLeavesBeforeItsAnswerEndsNobodyElse) {
  for (int i = 1; i <= 3; ++i) {
    {
      const TcpClient leaves = client();
      leaves.say(kWait);
      await_requests(2 * i - 1);
    }
    release(1);
    EXPECT_THAT(answer_to(kGet), EndsWith("fine "));
  }
}

// Whoever goes on sending after the answer is cut.
TEST_F(AtConnections, ARequestThatDoesNotEndIsCut) {
  const TcpClient endless = client();
  const auto begin = Clock::now();
  while (endless.say(std::string(10'000, 'x')) && Clock::now() - begin < seconds(10)) {
  }
  EXPECT_LT(Clock::now() - begin, seconds(5));
}

TEST_F(AtConnections, EndAtOnceBesideThoseThatSayNothing) {
  const TcpClient silent = client();
  EXPECT_THAT(answer_to(kGet), EndsWith("fine "));
  const auto begin = Clock::now();
  finish();
  EXPECT_LT(Clock::now() - begin, milliseconds(400));
  EXPECT_EQ(silent.answer(), "");
}

TEST_F(AtConnections, EndWithTheAnswerThatIsBeingComputed) {
  const TcpClient asked = client();
  asked.say(kWait);
  await_requests(1);
  std::thread ends([&] { finish(); });
  std::this_thread::sleep_for(milliseconds(50));
  release(1);
  ends.join();
  EXPECT_THAT(asked.answer(), EndsWith("fine "));
}

TEST(Connections, MayBeStoppedBeforeTheyServe) {
  Connections connections(0, kLimits, [](const Request&) { return Response(); });
  connections.stop();
  connections.serve();
}

}  // namespace
}  // namespace rehearse::studio
