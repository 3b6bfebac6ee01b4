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

// U+202E turns the line that follows it round, U+2066 isolates it, U+200B has no width, U+2028 breaks it.
TEST(Printable, NamesMarksOfDirectionAndWhatHasNoWidth) {
  EXPECT_EQ(printable("a\xe2\x80\xaegpj.exe"), "a\\xe2\\x80\\xaegpj.exe");
  EXPECT_EQ(printable("\xe2\x81\xa6\xe2\x80\x8b\xd8\x9c\xef\xbb\xbf"),
            "\\xe2\\x81\\xa6\\xe2\\x80\\x8b\\xd8\\x9c\\xef\\xbb\\xbf");
  EXPECT_EQ(printable("\xe2\x80\xa8", true), "\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("\xe2\x80\x94\xe2\x80\xa6\xd7\x90"), "\xe2\x80\x94\xe2\x80\xa6\xd7\x90")
      << "dash, ellipsis, alef";
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
