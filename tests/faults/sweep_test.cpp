// Whatever happens to a sweep, each finished row is kept once, and --resume runs the rest. The output equals
// that of an undisturbed sweep, byte for byte.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <filesystem>
#include <map>

#include "base/json_reader.h"
#include "figures.h"
#include "processes.h"
#include "scratch.h"
#include "sweep/sqlite.h"

namespace rehearse {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr double kPatience_s = 60;
constexpr const char* kScenario = SOURCE_DIR "/scenarios/llama3-70b-512-h100.json";

// 64 points: done, illegal and too large ones.
Words command(const Scratch& folder, const Words& more) {
  Words words = {REHEARSE,
                 "sweep",
                 kScenario,
                 "--mbs",
                 "1,2",
                 "--vpp",
                 "1,5",
                 "--gbs",
                 "64:1024:+64",
                 "--csv",
                 folder.file("rows.csv"),
                 "--jobs",
                 "2"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Ended {
  int exit_code = -1;
  std::string said;
};

Ended run(const Scratch& folder, const Words& words, const std::function<void()>& prepare = {}) {
  Process process(words, {{"XDG_CACHE_HOME", folder.path()}}, folder.file("log"), prepare);
  const int exit_code = process.wait(kPatience_s);
  return {exit_code, process.said()};
}

std::string undisturbed(const Words& more = {}) {
  const Scratch folder;
  const Ended ended = run(folder, command(folder, more));
  EXPECT_EQ(ended.exit_code, 0) << ended.said;
  return contents(folder.file("rows.csv"));
}

// The file's rows by point; none where it has no sweep yet.
std::map<std::int64_t, std::string> rows_of(const std::string& store) {
  std::map<std::int64_t, std::string> rows;
  Database database(store);
  Statement integrity(database, "PRAGMA integrity_check");
  EXPECT_TRUE(integrity.step());
  EXPECT_EQ(integrity.text(0), "ok");
  if (!Statement(database, "SELECT 1 FROM sqlite_master WHERE name = 'rows'").step()) return rows;
  Statement all(database, "SELECT point, state || report FROM rows");
  while (all.step()) EXPECT_TRUE(rows.emplace(all.integer(0), all.text(1)).second);
  return rows;
}

// No row of `before` is lost or changed.
void expect_kept(const std::map<std::int64_t, std::string>& before,
                 const std::map<std::int64_t, std::string>& after) {
  for (const auto& [point, row] : before) {
    ASSERT_TRUE(after.contains(point)) << point;
    EXPECT_EQ(after.at(point), row);
  }
}

TEST(SweepUnderKill, KeepsEveryRowOnceAndResumesToTheSameBytes) {
  const std::string expected = undisturbed();
  const Scratch folder;
  const std::string store = folder.file("rows.db");
  Moments moments;
  int sweeps = 0, kept = 0;
  for (int kills = times(6, 100); kills > 0;) {
    Process sweep(command(folder, {"--store", store, "--resume"}), {}, folder.file("log"));
    const std::map<std::int64_t, std::string> before = rows_of(store);
    sleep_s(moments.between(0, 0.4));
    sweep.send(SIGKILL);
    const bool had_ended = sweep.wait(kPatience_s) == 0;
    const std::map<std::int64_t, std::string> after = rows_of(store);
    expect_kept(before, after);
    kept += static_cast<int>(after.size() - before.size());
    if (!had_ended) --kills;
    if (!had_ended && kills > 0) continue;
    const Ended last = run(folder, command(folder, {"--store", store, "--resume"}));
    EXPECT_EQ(last.exit_code, 0) << last.said;
    EXPECT_TRUE(contents(folder.file("rows.csv")) == expected);
    ++sweeps;
    for (const char* file : {"rows.db", "rows.csv"}) std::filesystem::remove(folder.file(file));
  }
  figure(
      fmt::format("sweep killed {} times in {} sweeps of 64 rows: {} rows kept between kills, none lost, "
                  "none twice, CSV equal",
                  times(6, 100), sweeps, kept));
}

TEST(SweepOnAFullDisk, SaysSoKeepsRowsAndGoesOn) {
  const std::string expected = undisturbed();
  Moments moments;
  for (int i = 0; i < times(1, 20); ++i) {
    const Scratch folder;
    const std::string store = folder.file("rows.db");
    const auto most_bytes = static_cast<rlim_t>(moments.between(30e3, 300e3));
    const Ended full = run(folder, command(folder, {"--store", store}), [&] {
      const rlimit limit{most_bytes, most_bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
    });
    EXPECT_EQ(full.exit_code, 1) << full.said;
    EXPECT_THAT(full.said, AllOf(HasSubstr("rows.db: "), HasSubstr("continue with --resume")));
    const auto before = rows_of(store);
    EXPECT_LT(before.size(), 64U);
    const Ended resumed = run(folder, command(folder, {"--store", store, "--resume"}));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.said;
    expect_kept(before, rows_of(store));
    EXPECT_TRUE(contents(folder.file("rows.csv")) == expected);
  }
  figure(fmt::format("sweep with a store that could grow no more: {} times, exit code 1, resumed, CSV equal",
                     times(1, 20)));
}

// A small file system of memory, where this user may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(std::string folder, const char* size) : folder_(std::move(folder)) {
    std::filesystem::create_directory(folder_);
    mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, size) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) umount(folder_.c_str());
  }
  bool mounted() const { return mounted_; }
  void grow(const char* size) const { mount("tmpfs", folder_.c_str(), "tmpfs", MS_REMOUNT, size); }
  std::string file(const char* name) const { return folder_ + "/" + name; }

 private:
  std::string folder_;
  bool mounted_ = false;
};

TEST(SweepOnAFullDisk, OfMemoryGoesOnWhenThereIsRoom) {
  const Scratch folder;
  const SmallDisk disk(folder.file("disk"), "size=128k");
  if (!disk.mounted()) GTEST_SKIP() << "this user may mount nothing";
  const std::string expected = undisturbed();
  const std::string store = disk.file("rows.db");
  const Ended full = run(folder, command(folder, {"--store", store}));
  EXPECT_EQ(full.exit_code, 1) << full.said;
  EXPECT_THAT(full.said, AllOf(HasSubstr("full"), HasSubstr("continue with --resume")));
  disk.grow("size=16m");
  const auto before = rows_of(store);
  const Ended resumed = run(folder, command(folder, {"--store", store, "--resume"}));
  EXPECT_EQ(resumed.exit_code, 0) << resumed.said;
  expect_kept(before, rows_of(store));
  EXPECT_TRUE(contents(folder.file("rows.csv")) == expected);
}

TEST(SweepOutput, ThatCannotBeWrittenIsRefusedBeforeRowsAreRun) {
  const Scratch folder;
  std::filesystem::create_directory(folder.file("out"));
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  std::filesystem::permissions(folder.file("out"), std::filesystem::perms(0555));
  const auto as_nobody = [] {
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
  };
  for (const char* flag : {"--csv", "--jsonl", "--svg", "--html", "--store"}) {
    Words words = {REHEARSE, "sweep", kScenario, "--gbs", "64,128", "--vpp", "1", flag, folder.file("out/x")};
    const Ended ended = run(folder, words, as_nobody);
    if (ended.exit_code == 127 || ended.exit_code == 99) GTEST_SKIP() << "nobody cannot run the program";
    EXPECT_EQ(ended.exit_code, 1) << flag << ended.said;
    EXPECT_THAT(ended.said,
                AllOf(HasSubstr("out/x"), AnyOf(HasSubstr("Permission denied"), HasSubstr("unable to open"))))
        << flag;
    EXPECT_THAT(ended.said, testing::Not(HasSubstr("done"))) << flag;
  }
}

TEST(SweepOutput, ToAFullDeviceIsAnErrorAndTheRowsStay) {
  const Scratch folder;
  const std::string store = folder.file("rows.db");
  const Words words = {REHEARSE, "sweep",   kScenario, "--gbs", "64,128",   "--vpp",
                       "1",      "--store", store,     "--csv", "/dev/full"};
  const Ended ended = run(folder, words);
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_THAT(ended.said, HasSubstr("cannot write /dev/full"));
  EXPECT_EQ(rows_of(store).size(), 2U);
}

// Both start with an empty file, or with the rows that the other has written so far.
void expect_both_whole(const std::string& expected, bool own_store) {
  const Scratch folder, other;
  Moments moments;
  Words first = command(folder, {}), second = command(other, {});
  if (!own_store)
    for (Words* words : {&first, &second})
      words->insert(words->end(), {"--store", folder.file("rows.db"), "--resume"});
  const Process::Variables cache = {{"XDG_CACHE_HOME", folder.path()}};
  Process a(first, cache, folder.file("log"));
  sleep_s(moments.between(0, 0.3));
  Process b(second, cache, other.file("log"));
  EXPECT_EQ(a.wait(kPatience_s), 0) << a.said();
  EXPECT_EQ(b.wait(kPatience_s), 0) << b.said();
  EXPECT_TRUE(contents(folder.file("rows.csv")) == expected);
  EXPECT_TRUE(contents(other.file("rows.csv")) == expected);
  if (own_store) return;
  EXPECT_EQ(rows_of(folder.file("rows.db")).size(), 64U);
}

TEST(TwoSweeps, OnOneFileBothEndWithEveryRow) {
  const std::string expected = undisturbed();
  for (int i = 0; i < times(1, 10); ++i) {
    expect_both_whole(expected, false);
    expect_both_whole(expected, true);
  }
  figure(
      fmt::format("two sweeps on one file: {} times, each with every row once, CSV equal", times(1, 10) * 2));
}

// The second of two rows has 131,072 microbatches. With jitter each of them is simulated.
Words heavy_second(const Scratch& folder, const Words& more) {
  Words words = {REHEARSE,    "sweep",
                 kScenario,   "--mbs",
                 "1",         "--vpp",
                 "1",         "--gbs",
                 "64,131072", "--jitter",
                 "0.01",      "--large",
                 "--csv",     folder.file("rows.csv"),
                 "--jobs",    "1",
                 "--store",   folder.file("rows.db")};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

void expect_one_row_failed(const Words& fault, const Words& more, const std::function<void()>& prepare,
                           const char* reason) {
  const Scratch folder;
  Words words = heavy_second(folder, more);
  words.insert(words.end(), fault.begin(), fault.end());
  const Ended failed = run(folder, words, prepare);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_THAT(failed.said, AllOf(HasSubstr("1 done"), HasSubstr("1 rows failed"), HasSubstr(reason)));
  const std::map<std::int64_t, std::string> rows = rows_of(folder.file("rows.db"));
  ASSERT_EQ(rows.size(), 2U);
  words = heavy_second(folder, more);
  words.emplace_back("--resume");
  EXPECT_EQ(run(folder, words).exit_code, 0);
  const auto after = rows_of(folder.file("rows.db"));
  EXPECT_EQ(after.at(0), rows.at(0));
  EXPECT_THAT(after.at(1), testing::StartsWith("done"));
  const Scratch plain;
  EXPECT_EQ(run(plain, heavy_second(plain, more)).exit_code, 0);
  EXPECT_TRUE(contents(folder.file("rows.csv")) == contents(plain.file("rows.csv")));
}

// Counted, not listed: 100 million numbers are 800 MB.
TEST(Sweep, Of100MillionPointsBeginsInLittleMemory) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses";
  const Scratch folder;
  const std::string store = folder.file("rows.db");
  const Words words = {REHEARSE,     "sweep", kScenario, "--engine",     "reference", "--large",
                       "--jobs",     "1",     "--gbs",   "64:64000:+64", "--seq",     "128:12800:+128",
                       "--prefetch", "0:999", "--store", store};
  Process sweep(words, {}, folder.file("log"), [] {
    constexpr rlim_t kMax = 500'000'000;
    const rlimit limit{kMax, kMax};
    setrlimit(RLIMIT_AS, &limit);
  });
  const Stopwatch watch;
  while (!sweep.has_ended() && watch.seconds() < kPatience_s &&
         (!std::filesystem::exists(store) || rows_of(store).empty()))
    sleep_s(0.05);
  sweep.send(SIGTERM);
  EXPECT_EQ(sweep.wait(kPatience_s), 130) << sweep.said();
  EXPECT_FALSE(rows_of(store).empty()) << sweep.said();
}

// Without a home the rows lie in a folder for temporary files, where anybody may have laid something.
class WithoutAHome : public testing::Test {
 protected:
  Ended sweep(int exit_code) const {
    Process process({REHEARSE, "sweep", kScenario, "--vpp", "1,5", "--engine", "reference"},
                    {{"XDG_CACHE_HOME", ""}, {"HOME", ""}, {"TMPDIR", folder_.path()}}, log_.file("log"));
    const Ended ended = {process.wait(kPatience_s), process.said()};
    EXPECT_EQ(ended.exit_code, exit_code) << ended.said;
    return ended;
  }
  std::string cache() const { return folder_.file("rehearse"); }
  Scratch folder_, log_, elsewhere_;
};

TEST_F(WithoutAHome, RowsLieInAFolderOfTheUsersOwn) {
  sweep(0);
  EXPECT_EQ(std::filesystem::status(cache()).permissions(), std::filesystem::perms::owner_all);
  sweep(0);
}

TEST_F(WithoutAHome, AFolderThatIsALinkIsRefused) {
  std::filesystem::create_symlink(elsewhere_.path(), cache());
  EXPECT_THAT(sweep(1).said, AllOf(HasSubstr(cache()), HasSubstr("--store FILE")));
  EXPECT_TRUE(elsewhere_.names().empty());
}

TEST_F(WithoutAHome, AFolderThatOthersMayWriteToIsRefused) {
  std::filesystem::create_directory(cache());
  std::filesystem::permissions(cache(), std::filesystem::perms::all);
  EXPECT_THAT(sweep(1).said, HasSubstr("others may write to it"));
}

TEST_F(WithoutAHome, ALockThatIsALinkIsNotFollowed) {
  sweep(0);
  for (const auto& entry : std::filesystem::directory_iterator(cache())) {
    if (entry.path().extension() != ".lock") continue;
    std::filesystem::remove(entry.path());
    std::filesystem::create_symlink(elsewhere_.file("victim"), entry.path());
  }
  EXPECT_THAT(sweep(1).said, HasSubstr("Too many levels of symbolic links"));
  EXPECT_TRUE(elsewhere_.names().empty());
}

TEST(ARow, OutOfMemoryFailsAloneAndIsTriedAgain) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer needs more addresses";
  const auto limited = [] {
    constexpr rlim_t kMax = 150'000'000;
    const rlimit limit{kMax, kMax};
    setrlimit(RLIMIT_AS, &limit);
  };
  for (const char* engine : {"simgrid", "reference"})
    expect_one_row_failed({}, {"--engine", engine}, limited, "out of memory");
}

TEST(ARow, ThatTakesTooLongFailsAloneAndIsTriedAgain) {
  expect_one_row_failed({"--row-timeout", "0.3"}, {}, {}, "took longer than 0.3 s");
}

}  // namespace
}  // namespace rehearse
