#include "base/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "scratch.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

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

std::string refusal(const std::string& path) {
  try {
    read_text_file(path);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(TextFile, ThatCannotBeReadSaysWhy) {
  fs::create_symlink("loop", place("loop"));
  EXPECT_THAT(refusal(place("loop")), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(refusal(place(std::string(300, 'n'))), HasSubstr("File name too long"));
  EXPECT_THAT(refusal(place("absent")), HasSubstr("no such file"));
  EXPECT_THAT(refusal(scratch().path()), HasSubstr("a folder"));
  scratch().write("file", "");
  EXPECT_THAT(refusal(place("file/below")), HasSubstr("Not a directory"));
  const fs::path pipe = place("named");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("a named pipe"));
}

// Whatever another process makes of the name meanwhile, nobody waits for the other end of a pipe.
TEST(TextFile, ThatBecomesAPipeIsNotWaitedFor) {
  const fs::path pipe = place("pipes/pipe"), file = place("pipes/file"), name = place("pipes/name");
  fs::create_directory(place("pipes"));
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::ofstream(file) << "text";
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over)
      for (const fs::path& at : {pipe, file}) {
        fs::create_hard_link(at, place("pipes/next"));
        fs::rename(place("pipes/next"), name);
      }
  });
  int read = 0, refused = 0;
  while (read < 200 || refused < 200) {
    const std::string said = refusal(name);
    said == "none" ? ++read : ++refused;
  }
  over = true;
  other.join();
}

// Both ends of a pipe, as the shell opens one for `<(command)`.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { close(ends_[0]); }
  std::string name() const { return "/dev/fd/" + std::to_string(ends_[0]); }
  void say(const std::string& text) const {
    EXPECT_EQ(write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() const { close(ends_[1]); }

 private:
  std::array<int, 2> ends_{};
};

TEST(Stream, IsReadToItsEndAndTheSameAgain) {
  const Pipe pipe;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i) {
      pipe.say("part ");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    pipe.end();
  });
  EXPECT_EQ(read_text_file(pipe.name()), "part part part ");
  other.join();
  EXPECT_EQ(read_text_file(pipe.name()), "part part part ");
  EXPECT_THROW(read_text_file(pipe.name(), 10), InputError);
  EXPECT_TRUE(was_streamed(pipe.name()));
}

TEST(Stream, IsNoFolderOfRelativePaths) {
  for (const char* stream : {"-", "/dev/stdin", "/dev/fd/63", "/proc/self/fd/3"}) {
    EXPECT_TRUE(is_stream(stream)) << stream;
    EXPECT_EQ(folder_of(stream), "") << stream;
  }
  for (const char* file : {"a/b.json", "/dev/null", "b-", "--"}) EXPECT_FALSE(is_stream(file)) << file;
  EXPECT_EQ(folder_of("a/b.json"), "a");
}

TEST(Stream, ThatIsNotThereIsRefused) {
  EXPECT_THAT(refusal("/dev/fd/987654"), HasSubstr("no such file"));
}

TEST(TextFile, OfTheSystemThatTellsNoSizeIsRead) {
  EXPECT_FALSE(read_text_file("/proc/self/status").empty());
}

}  // namespace
}  // namespace rehearse
