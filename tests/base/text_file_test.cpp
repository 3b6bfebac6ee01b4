#include "base/text_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "scratch.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

fs::path place(const std::string& name) {
  return scratch().file(name);
}

TEST(TextFile, IsReadToItsLastByteAndNoFurther) {
  const std::string text = std::string(100'000, 'a') + '\0' + "\xff\n";
  std::ofstream(place("all"), std::ios::binary) << text;
  EXPECT_EQ(read_text_file(place("all")), text);
  EXPECT_EQ(read_text_file(place("all"), text.size()), text);
  EXPECT_THROW(read_text_file(place("all"), text.size() - 1), InputError);
}

TEST(TextFile, ThatIsNoneOrMayNeverEndIsRefused) {
  const fs::path pipe = place("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, place("none"), fs::path(scratch().path()), fs::path("/dev/zero")})
    EXPECT_THROW(read_text_file(path), InputError) << path;
}

TEST(TextFile, OfTheSystemThatTellsNoSizeIsRead) {
  EXPECT_FALSE(read_text_file("/proc/self/status").empty());
}

}  // namespace
}  // namespace rehearse
