// The server answers its own page and nobody else, and serves nothing but that page.
#include "studio/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <stdexcept>
#include <thread>

namespace rehearse::studio {
namespace {

using testing::HasSubstr;

constexpr const char* kJson = "application/json";

class StudioServer : public testing::Test {
 protected:
  StudioServer()
      : server_({"<p>page</p>",
                 [](const std::string& question) -> std::string {
                   if (question == "fail") throw std::runtime_error("broken");
                   return "ran " + question;
                 },
                 [](const std::string& question) { return question == "old" ? "" : "refined " + question; }},
                0),
        thread_([this] { server_.serve(); }),
        client_("127.0.0.1", server_.port()) {}
  ~StudioServer() override {
    server_.stop();
    thread_.join();
  }

  Server server_;
  std::thread thread_;
  httplib::Client client_;
};

TEST_F(StudioServer, ServesItsPageAndAnswers) {
  const auto page = client_.Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->body, "<p>page</p>");
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(page->get_header_value("X-Frame-Options"), "DENY");
  EXPECT_EQ(client_.Post("/run", "{}", kJson)->body, "ran {}");
  EXPECT_EQ(client_.Post("/refine", "{}", kJson)->body, "refined {}");
}

TEST_F(StudioServer, IgnoresRanges) {
  for (const char* ranges : {"bytes=0-1", "bytes=0-,0-,0-", "bytes=9-1", "pages=1", "bytes=0-,x"}) {
    const auto page = client_.Get("/", {{"Range", ranges}});
    ASSERT_TRUE(page);
    EXPECT_EQ(page->status, 200) << ranges;
    EXPECT_EQ(page->body, "<p>page</p>") << ranges;
  }
}

TEST_F(StudioServer, RefusesOtherHostsAndOrigins) {
  EXPECT_EQ(client_.Get("/", {{"Host", "evil.example"}})->status, 403);
  EXPECT_EQ(client_.Get("/", {{"Host", "evil.example:" + std::to_string(server_.port())}})->status, 403);
  EXPECT_EQ(client_.Post("/run", {{"Origin", "http://evil.example"}}, "{}", kJson)->status, 403);
  EXPECT_EQ(client_.Post("/run", {{"Origin", "null"}}, "{}", kJson)->status, 403);
  const std::string own = "http://localhost:" + std::to_string(server_.port());
  EXPECT_EQ(client_.Post("/run", {{"Origin", own}}, "{}", kJson)->status, 200);
}

TEST_F(StudioServer, ServesNoFiles) {
  for (const char* path :
       {"/etc/passwd", "/../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/index.html", "/run"})
    EXPECT_EQ(client_.Get(path)->status, 404) << path;
}

TEST_F(StudioServer, RefusesWhatIsNoJsonOrTooLarge) {
  EXPECT_EQ(client_.Post("/run", "{}", "text/plain")->status, 415);
  EXPECT_EQ(client_.Post("/run", std::string(65 * 1024, ' '), kJson)->status, 413);
  EXPECT_EQ(client_.Post("/run", std::string(63 * 1024, ' '), kJson)->status, 200);
}

TEST_F(StudioServer, SaysWhatFailedAndWhatWasOvertaken) {
  const auto failed = client_.Post("/run", "fail", kJson);
  EXPECT_EQ(failed->status, 500);
  EXPECT_THAT(failed->body, HasSubstr("broken"));
  EXPECT_EQ(client_.Post("/refine", "old", kJson)->status, 409);
  EXPECT_EQ(client_.Post("/run", "{}", kJson)->status, 200);
}

TEST_F(StudioServer, HasItsPortAlone) {
  EXPECT_THROW(Server({"", {}, {}}, server_.port()), std::runtime_error);
}

}  // namespace
}  // namespace rehearse::studio
