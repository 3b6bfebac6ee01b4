#include "base/utf8.h"

#include <gtest/gtest.h>

namespace rehearse {
namespace {

TEST(Printable, KeepsText) {
  EXPECT_EQ(printable("Llama 3 \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80 ~"),
            "Llama 3 \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80 ~");
}

TEST(Printable, NamesControlCharactersOfOneByteAndOfTwo) {
  EXPECT_EQ(printable("\x1b[2J\x07\x7f\r\t"), "\\x1b[2J\\x07\\x7f\\x0d\\x09");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m\xc2\xa0"),
            "\\xc2\\x9b31m\xc2\xa0");
}

TEST(Printable, NamesBytesThatAreNoCharacter) {
  EXPECT_EQ(printable("a\xff\xc3(\xed\xa0\x80"), "a\\xff\\xc3(\\xed\\xa0\\x80");
}

TEST(Printable, KeepsLineBreaksWhereAsked) {
  EXPECT_EQ(printable("a\nb", true), "a\nb");
  EXPECT_EQ(printable("a\nb"), "a\\x0ab");
}

TEST(Printable, OfItselfIsItself) {
  const std::string once = printable("\x1b[1m\n\xff");
  EXPECT_EQ(printable(once), once);
}

}  // namespace
}  // namespace rehearse
