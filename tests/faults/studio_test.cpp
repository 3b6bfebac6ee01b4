// Requests from other sites' pages, and from programs without proper HTTP, are refused soon.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>

#include "scratch.h"
#include "studio_program.h"
#include "tcp_client.h"

namespace rehearse {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kJson = "application/json";

std::string host(const Studio& studio) {
  return fmt::format("Host: 127.0.0.1:{}\r\n", studio.port());
}

// Status of the answer to such a request; 0 for a connection that is closed without one.
int status_of(const Studio& studio, const std::string& request) {
  const TcpClient client(studio.port());
  client.say(request);
  const std::string answer = client.answer();
  EXPECT_THAT(answer, Not(HasSubstr("still open"))) << request.substr(0, 100);
  return answer.starts_with("HTTP/1.1 ") ? std::atoi(answer.c_str() + 9) : 0;
}

TEST(Studio, AnswersOnlyItsOwnPage) {
  const Studio studio;
  for (const char* foreign :
       {"evil.example", "evil.example:80", "127.0.0.1.evil.example", "0.0.0.0", "[::]", ""})
    EXPECT_EQ(status_of(studio, fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", foreign)), 403) << foreign;
  EXPECT_EQ(status_of(studio, "GET / HTTP/1.0\r\n\r\n"), 403);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1", "file://"})
    EXPECT_EQ(status_of(studio, fmt::format("POST /run HTTP/1.1\r\n{}Origin: {}\r\nContent-Type: {}\r\n"
                                            "Content-Length: 2\r\n\r\n{{}}",
                                            host(studio), origin, kJson)),
              403)
        << origin;
  EXPECT_EQ(status_of(studio, "GET / HTTP/1.1\r\n" + host(studio) + "\r\n"), 200);
}

TEST(Studio, TellsBrowsersToKeepNothingAndFrameNothing) {
  const Studio studio;
  const auto page = studio.client().Get("/");
  ASSERT_TRUE(page);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"Cache-Control", "no-store"},
                                          {"X-Content-Type-Options", "nosniff"},
                                          {"X-Frame-Options", "DENY"},
                                          {"Content-Security-Policy", "frame-ancestors 'none'"},
                                          {"Cross-Origin-Resource-Policy", "same-origin"},
                                          {"Referrer-Policy", "no-referrer"}})
    EXPECT_EQ(page->get_header_value(name), value);
  EXPECT_FALSE(page->has_header("Access-Control-Allow-Origin"));
  EXPECT_THAT(page->body, HasSubstr("default-src 'none'; script-src 'sha256-"));
}

TEST(Studio, RefusesOtherMethodsAndWaysToSendABody) {
  const Studio studio;
  const auto asked = [&](const std::string& line, const std::string& more) {
    return status_of(studio, line + " HTTP/1.1\r\n" + host(studio) + more + "\r\n");
  };
  EXPECT_EQ(asked("HEAD /", ""), 200);
  for (const char* method : {"OPTIONS", "DELETE", "PUT", "PATCH", "POST"})
    EXPECT_EQ(asked(std::string(method) + " /", "Content-Length: 0\r\n"), 405) << method;
  EXPECT_EQ(asked("PUT /run", "Content-Length: 0\r\n"), 405);
  EXPECT_EQ(asked("POST /run", fmt::format("Content-Type: {}\r\n", kJson)), 411);
  EXPECT_EQ(asked("POST /run", fmt::format("Content-Type: {}\r\nTransfer-Encoding: chunked\r\n", kJson)),
            411);
  EXPECT_EQ(asked("POST /run",
                  fmt::format("Content-Type: {}\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n", kJson)),
            411);
  EXPECT_EQ(asked("POST /run", "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 0\r\n"),
            415);
  EXPECT_EQ(asked("POST /run", fmt::format("Content-Type: {}\r\nContent-Length: 100000000\r\n", kJson)), 413);
}

TEST(Studio, EndsWhatIsNoHttp) {
  const Studio studio;
  for (const std::string& request :
       {std::string("\r\n\r\n"), std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string(200, '\0') + "\r\n\r\n", std::string("\x16\x03\x01\x02\0\x01\r\n\r\n", 10),
        "GET /" + std::string(70'000, 'a') + " HTTP/1.1\r\n\r\n", std::string(100'000, 'x'),
        "GET / HTTP/1.1\r\n" + host(studio) + "X: " + std::string(70'000, 'b') + "\r\n\r\n",
        std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
        std::string("POST /run HTTP/1.1\r\nContent-Length: -5\r\n\r\n"),
        std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")})
    EXPECT_NE(status_of(studio, request), 200) << request.substr(0, 40);
  EXPECT_EQ(studio.client().Get("/")->status, 200);
}

TEST(Studio, ReadsNoFileThatAQuestionNames) {
  const Scratch folder;
  const Studio studio;
  httplib::Client client = studio.client();
  const std::string existing = folder.file("there.json"), absent = folder.file("absent.json");
  std::ofstream(existing) << R"({"secret": "4711"})";
  for (const char* knob : {"--model", "--cluster", "--schedule", "--gpus"}) {
    std::vector<std::string> answers;
    for (const std::string& name : {existing, absent}) {
      const auto answer = client.Post("/run", fmt::format(R"({{"{}": "{}"}})", knob, name), kJson);
      ASSERT_TRUE(answer);
      EXPECT_THAT(answer->body, Not(HasSubstr("4711")));
      std::string said = answer->body;
      for (std::size_t at = said.find(name); at != std::string::npos; at = said.find(name))
        said.replace(at, name.size(), "NAME");
      answers.push_back(said);
    }
    EXPECT_EQ(answers[0], answers[1]) << knob << ": what is there cannot be told from what is not";
  }
  for (const char* question :
       {R"({"--profile": "/etc/passwd"})", R"({"--set": "model=/etc/passwd"})", R"({"": "/etc/passwd"})",
        R"({"--model": "/etc/passwd"})", R"({"--model": ["/etc/passwd"]})", "[]", "", "{", "null",
        R"({"model": {"file": "/etc/passwd"}})"}) {
    const auto answer = client.Post("/run", question, kJson);
    ASSERT_TRUE(answer) << question;
    EXPECT_THAT(answer->body, HasSubstr("violations")) << question;
    EXPECT_THAT(answer->body, Not(HasSubstr("root:"))) << question;
  }
}

// A byte a second each, and as many that say nothing: a page and an answer come at once meanwhile.
TEST(Studio, AnswersBesideSlowAndIdleConnections) {
  const Studio studio;
  const int count = times(300, 600);
  std::vector<TcpClient> slow;
  for (int i = 0; i < count; ++i) slow.emplace_back(studio.port());
  std::vector<double> seconds;
  const Stopwatch watch;
  while (watch.seconds() < times(2, 20)) {
    for (std::size_t i = 0; i < slow.size(); i += 2) slow[i].say("G");
    for (int i = 0; i < 4; ++i) {
      const Stopwatch answered;
      const auto page = studio.client().Get("/");
      ASSERT_TRUE(page);
      EXPECT_EQ(page->status, 200);
      const auto answer = studio.client().Post("/run", "{}", kJson);
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->status, 200);
      seconds.push_back(answered.seconds());
      sleep_s(0.25);
    }
  }
  figure(
      fmt::format("studio, page and answer beside {} connections that send a byte a second or none", count),
      seconds, 5);
}

// Answer times of one question each. Clients stay connected: with their answer, silent, or not reading it.
std::vector<double> answer_seconds(const Studio& studio, int count) {
  std::vector<double> seconds;
  for (int i = 0; i < count; ++i) {
    const Stopwatch watch;
    const auto answer = studio.client().Post("/run", "{}", kJson);
    EXPECT_TRUE(answer && answer->status == 200);
    seconds.push_back(watch.seconds());
  }
  return seconds;
}

TEST(Studio, AnswersBesideClientsThatKeepTheirConnection) {
  const Studio studio;
  std::vector<TcpClient> lingering, silent;
  for (int i = 0; i < 400; ++i) {
    silent.emplace_back(studio.port());
    lingering.emplace_back(studio.port());
    lingering.back().say("HEAD / HTTP/1.1\r\n" + host(studio) + "\r\n");
  }
  figure("studio, answer beside 400 clients that keep their connection and 400 that say nothing",
         answer_seconds(studio, 20), 2);
  for (const TcpClient& client : lingering)
    EXPECT_THAT(client.answer(), testing::StartsWith("HTTP/1.1 200 ")) << "none is dropped";
}

TEST(Studio, AnswersBesideClientsThatTakeNoAnswer) {
  const Studio studio;
  std::vector<TcpClient> deaf;
  for (int i = 0; i < 64; ++i) {
    deaf.emplace_back(studio.port(), 4096);
    deaf.back().say("GET / HTTP/1.1\r\n" + host(studio) + "\r\n");
  }
  figure("studio, answer beside 64 clients that read nothing of theirs", answer_seconds(studio, 20), 2);
}

TEST(Studio, TellsClientsThatAreTooManyToComeAgain) {
  const Studio studio;
  std::vector<TcpClient> silent;
  for (int i = 0; i < 900; ++i) silent.emplace_back(studio.port());
  const std::string said = silent.front().answer();
  EXPECT_THAT(said, testing::AllOf(HasSubstr(" 503 "), HasSubstr("Retry-After: ")));
  answer_seconds(studio, 1);
}

// Peak memory during `attack` and for two seconds after.
double most_bytes(const Studio& studio, const std::function<void()>& attack) {
  std::atomic<bool> over = false;
  double most = 0;
  std::thread watch([&] {
    while (!over) {
      most = std::max(most, studio.resident_bytes());
      sleep_s(0.01);
    }
  });
  attack();
  sleep_s(2);
  over = true;
  watch.join();
  return most;
}

constexpr double kMaxBytes = 150e6;

// A range can cost a header of its own in the answer, a whole page, or a recursion of the parser, 2,000
// times.
TEST(Studio, AnswersRangesWithOnePage) {
  const Studio studio;
  const double before = studio.resident_bytes();
  std::string ranges;
  for (int i = 0; i < 2000; ++i) ranges += ",0-";
  const std::string request = "GET / HTTP/1.1\r\n" + host(studio) + "Range: bytes=";
  const auto answer = [&](const std::string& bytes) {
    const TcpClient client(studio.port());
    client.say(request + bytes + "\r\n\r\n");
    return client.answer();
  };
  for (const std::string& bytes : {ranges.substr(1), std::string("x")}) {
    EXPECT_THAT(answer(bytes), testing::StartsWith("HTTP/1.1 200 "));
    EXPECT_LT(answer(bytes).size(), 5e6);
  }
  EXPECT_EQ(status_of(studio, request + std::string(70'000, '1') + "\r\n\r\n"), 431);
  const double most = most_bytes(studio, [&] {
    std::vector<TcpClient> deaf;
    for (int i = 0; i < 600; ++i) {
      deaf.emplace_back(studio.port(), 4096);
      deaf.back().say(request + ranges.substr(1) + "\r\n\r\n");
    }
    sleep_s(2);  // beside them, another is told to come again
    answer_seconds(studio, 5);
  });
  figure(fmt::format("studio, memory under 600 requests of 2,000 ranges: {:.0f} MB before, {:.0f} MB at most",
                     before / 1e6, most / 1e6));
  EXPECT_TRUE(kSanitized || most < kMaxBytes) << most;
}

// Requests of maximum size, or with many short headers, on as many connections as allowed, each without the
// end of its body.
TEST(Studio, KeepsRequestsWithoutAnEndInLittleMemory) {
  const Studio studio;
  std::string few, many;
  for (int i = 0; i < 90; ++i) few += "a: " + std::string(170, 'b') + "\r\n";
  for (int i = 0; i < 3'000; ++i) many += "a:b\r\n";
  for (const std::string& headers : {few, many}) {
    const double most = most_bytes(studio, [&] {
      std::vector<TcpClient> clients;
      for (int i = 0; i < 700; ++i) {
        clients.emplace_back(studio.port());
        clients.back().say("POST /run HTTP/1.1\r\nContent-Length: 65000\r\n" + headers + "\r\n" +
                           std::string(64'000, ' '));
      }
      answer_seconds(studio, 5);
      sleep_s(1);
    });
    figure(fmt::format("studio, memory under 700 requests without an end: {:.0f} MB at most", most / 1e6));
    EXPECT_TRUE(kSanitized || most < kMaxBytes) << most;
  }
}

// Without an end: one line, or headers of three letters. Sixteen at once, as fast as they are read.
TEST(Studio, CutsRequestsThatDoNotEnd) {
  const Studio studio;
  std::string headers;
  for (int i = 0; i < 10'000; ++i) headers += "a:b\r\n";
  for (const std::string& piece : {std::string(50'000, 'x'), headers}) {
    const double most = most_bytes(studio, [&] {
      std::vector<std::jthread> clients;
      for (int i = 0; i < 16; ++i)
        clients.emplace_back([&] {
          const TcpClient client(studio.port());
          client.say("GET / HTTP/1.1\r\n" + host(studio));
          const Stopwatch watch;
          while (client.say(piece) && watch.seconds() < 4) {
          }
          EXPECT_LT(watch.seconds(), 4 * kSlower) << "it is not cut";
        });
      answer_seconds(studio, 5);
    });
    figure(fmt::format("studio, memory under 16 requests without an end: {:.0f} MB at most", most / 1e6));
    EXPECT_TRUE(kSanitized || most < kMaxBytes) << most;
  }
}

pid_t child_of(pid_t process) {
  const std::string id = std::to_string(process);
  return std::atoi(contents("/proc/" + id + "/task/" + id + "/children").c_str());
}

TEST(Studio, RefinesAgainAfterItsProcessWasKilled) {
  Studio studio;
  const auto refined = [&] {
    const auto answer = studio.client().Post("/refine", "{}", kJson);
    return answer ? answer->status : 0;
  };
  EXPECT_EQ(refined(), 200);
  const pid_t first = child_of(studio.process().id());
  ASSERT_GT(first, 0);
  kill(first, SIGKILL);
  EXPECT_EQ(refined(), 200) << studio.said();
  EXPECT_EQ(refined(), 200);
}

TEST(Studio, EndsConnectionsThatSendNoWholeRequest) {
  const Studio studio;
  const TcpClient silent(studio.port()), slow(studio.port());
  silent.say("POST /run HTTP/1.1\r\n");
  std::jthread sends([&](const std::stop_token& over) {
    while (!over.stop_requested() && slow.say("G")) sleep_s(0.2);
  });
  const Stopwatch watch;
  EXPECT_EQ(silent.answer(), "");
  EXPECT_EQ(slow.answer(), "");
  EXPECT_LT(watch.seconds(), 15);
}

TEST(Studio, EndsAtOnceBesideClientsThatSayNothing) {
  Studio studio;
  std::vector<TcpClient> silent;
  for (int i = 0; i < 900; ++i) silent.emplace_back(studio.port());
  const TcpClient asks(studio.port());
  asks.say("POST /run HTTP/1.1\r\nContent-Length: 9\r\n" + host(studio) + "\r\n");
  sleep_s(0.3);
  const Stopwatch watch;
  studio.process().send(SIGINT);
  EXPECT_EQ(studio.process().wait(20), 0);
  EXPECT_LT(watch.seconds(), 2 * kSlower);
}

}  // namespace
}  // namespace rehearse
