// Who may ask the studio?
#include "studio/guard.h"

#include <gtest/gtest.h>

namespace rehearse::studio {
namespace {

TEST(Guard, TakesThisMachinesNamesWithThePort) {
  for (const char* host : {"127.0.0.1:8642", "localhost:8642", "[::1]:8642"}) {
    EXPECT_TRUE(is_own_host(host, 8642)) << host;
    EXPECT_TRUE(is_own_origin(std::string("http://") + host, 8642)) << host;
  }
  EXPECT_TRUE(is_own_host("localhost", 80));
  EXPECT_TRUE(is_own_origin("", 8642)) << "an address typed by the user has no origin";
}

TEST(Guard, RefusesEveryOtherName) {
  for (const char* host : {"", "127.0.0.1", "127.0.0.1:8643", "localhost.evil.example:8642",
                           "evil.example:8642", "evil.example", "127.0.0.1:8642.evil.example",
                           "127.0.0.1:08642", "0.0.0.0:8642", " localhost:8642", "LOCALHOST:8642x"})
    EXPECT_FALSE(is_own_host(host, 8642)) << host;
}

TEST(Guard, RefusesEveryOtherOrigin) {
  for (const char* origin : {"null", "http://evil.example", "https://127.0.0.1:8642", "http://127.0.0.1",
                             "http://127.0.0.1:80", "http://localhost:8642/", "file://"})
    EXPECT_FALSE(is_own_origin(origin, 8642)) << origin;
}

TEST(Guard, QuestionsAreJson) {
  EXPECT_TRUE(is_json("application/json"));
  EXPECT_TRUE(is_json("application/json; charset=utf-8"));
  for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                           "text/plain; application/json"})
    EXPECT_FALSE(is_json(type)) << type;
}

TEST(Refusal, IsOfAllButThePageAndQuestionsAsBytes) {
  const auto status = [](const Asked& asked) { return refusal(asked).status; };
  constexpr const char* kJson = "application/json";
  EXPECT_EQ(status({"GET", "/", "", false, false}), 0);
  EXPECT_EQ(status({"HEAD", "/", "", false, false}), 0);
  EXPECT_EQ(status({"POST", "/run", kJson, true, false}), 0);
  EXPECT_EQ(status({"POST", "/refine", kJson, true, false}), 0);
  EXPECT_EQ(status({"GET", "/etc/passwd", "", false, false}), 404);
  EXPECT_EQ(status({"GET", "/run", "", false, false}), 404);
  EXPECT_EQ(status({"DELETE", "/", "", false, false}), 405);
  EXPECT_EQ(status({"PUT", "/run", kJson, true, false}), 405);
  EXPECT_EQ(status({"POST", "/run", kJson, true, true}), 411);
  EXPECT_EQ(status({"POST", "/run", kJson, false, false}), 411);
  EXPECT_EQ(status({"GET", "/", "", false, true}), 400);
  EXPECT_EQ(status({"POST", "/run", "text/plain", true, false}), 415);
}

}  // namespace
}  // namespace rehearse::studio
