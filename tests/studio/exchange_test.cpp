// httplib reads a request from memory, without ranges.
#include "studio/exchange.h"

#include <gtest/gtest.h>

#include <array>

namespace rehearse::studio {
namespace {

std::string read_by_httplib(const std::string& request) {
  Exchange exchange(request);
  std::string text;
  std::array<char, 7> some;
  for (ssize_t count = 0; (count = exchange.read(some.data(), some.size())) > 0;)
    text.append(some.data(), static_cast<std::size_t>(count));
  return text;
}

TEST(Exchange, HandsOverWhatWasSentAndKeepsWhatIsAnswered) {
  const std::string request = "POST /run HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}";
  EXPECT_EQ(read_by_httplib(request), request);
  Exchange exchange(request);
  EXPECT_EQ(exchange.write("ab", 2), 2);
  EXPECT_EQ(exchange.write("c", 1), 1);
  EXPECT_EQ(exchange.answer(), "abc");
}

TEST(Exchange, LeavesOutRangesWhereverTheyStand) {
  const std::string plain = "GET / HTTP/1.1\r\nHost: a\r\nIf-Range: x\r\n\r\nRange: body\r\n";
  for (const char* request :
       {"GET / HTTP/1.1\r\nRange: bytes=0-,0-\r\nHost: a\r\nIf-Range: x\r\n\r\nRange: body\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nRANGE:bytes=0-\r\nIf-Range: x\r\nrange: bytes=1-\r\n\r\nRange: "
        "body\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nIf-Range: x\r\nRange : a\nrange: b\r\n\r\nRange: body\r\n"})
    EXPECT_EQ(read_by_httplib(request), plain) << request;
}

TEST(Exchange, OfARequestThatIsNoneIsWhatWasSent) {
  for (const char* request : {"", "\n", "GET", "GET /\r\nHost", "\r\n\r\n"})
    EXPECT_EQ(read_by_httplib(request), request);
  EXPECT_EQ(read_by_httplib("GET /\r\nRange: x"), "GET /\r\n");
}

}  // namespace
}  // namespace rehearse::studio
