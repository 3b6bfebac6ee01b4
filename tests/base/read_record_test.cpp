#include "base/read_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <thread>

#include "base/data_path.h"
#include "base/error.h"
#include "base/text_file.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

TEST(Digest, TellsTextsApart) {
  const std::string text(100, 'a');
  std::set<std::string> met = {digest(""), digest(std::string(1, '\0')), digest(text), digest(text + '\0')};
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = 'b';
    met.insert(digest(other));
  }
  EXPECT_EQ(met.size(), 104U);
  EXPECT_EQ(digest(text), digest(std::string(100, 'a')));
  EXPECT_EQ(digest(text).size(), 16U);
}

TEST(ReadRecord, HasWhatWasReadWhileItLived) {
  const Scratch folder;
  const std::string a = folder.write("a", "1"), b = folder.write("b", "2"), c = folder.file("c");
  read_text_file(a);
  const ReadRecord outer;
  {
    const ReadRecord inner;
    read_text_file(b);
    EXPECT_THAT(inner.files(), ElementsAre(Pair(b, digest("2"))));
  }
  EXPECT_THROW(read_text_file(c), InputError);
  EXPECT_THAT(outer.files(), ElementsAre(Pair(b, digest("2")), Pair(c, "none")));
  const ReadRecord again;
  note_read(outer.files());
  EXPECT_EQ(again.files(), outer.files());
}

TEST(ReadRecord, IsOfOneThread) {
  const Scratch folder;
  const std::string file = folder.write("a", "1");
  const ReadRecord record;
  std::thread([&] { read_text_file(file); }).join();
  EXPECT_THAT(record.files(), IsEmpty());
}

TEST(DigestNow, FollowsTheFile) {
  const Scratch folder;
  const std::string file = folder.write("a", "1");
  EXPECT_EQ(digest_now(file), digest("1"));
  folder.write("a", "2");
  EXPECT_EQ(digest_now(file), digest("2"));
  std::filesystem::remove(file);
  EXPECT_EQ(digest_now(file), "none");
  EXPECT_EQ(digest_now("-"), "none") << "nobody waits for a stream";
}

class ShippedData : public testing::Test {
 protected:
  ShippedData() {
    for (const Scratch* folder : {&here_, &there_}) std::filesystem::create_directory(folder->file("things"));
    here_.write("things/a.json", "1");
    there_.write("things/a.json", "2");
    lie_in(here_);
  }
  ~ShippedData() override { unsetenv("REHEARSE_DATA"); }
  static void lie_in(const Scratch& folder) { setenv("REHEARSE_DATA", folder.path().c_str(), 1); }
  Scratch here_, there_;
};

TEST_F(ShippedData, HasItsNameWhereverItLies) {
  const ReadRecord record;
  read_text_file(find_data_file("thing", "things", "a"));
  ASSERT_THAT(record.files(), ElementsAre(Pair("data:things/a.json", digest("1"))));
  EXPECT_EQ(digest_now("data:things/a.json"), digest("1"));
  lie_in(there_);
  EXPECT_EQ(digest_now("data:things/a.json"), digest("2"));
}

TEST_F(ShippedData, ThatIsListedOrMissingIsOnRecord) {
  const ReadRecord record;
  EXPECT_THROW(find_data_file("thing", "things", "b"), InputError);
  ASSERT_EQ(record.files().size(), 2U);
  for (const auto& [name, then] : record.files()) EXPECT_EQ(digest_now(name), then) << name;
  here_.write("things/b.json", "3");
  for (const auto& [name, then] : record.files()) EXPECT_NE(digest_now(name), then) << name;
}

TEST(ProgramDigest, IsTheSameAsLongAsTheProgram) {
  EXPECT_EQ(program_digest().size(), 16U);
  EXPECT_EQ(&program_digest(), &program_digest());
}

}  // namespace
}  // namespace rehearse
