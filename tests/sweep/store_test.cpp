#include "sweep/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/read_record.h"
#include "base/text_file.h"
#include "scratch.h"
#include "small_grid.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;

Row done(double seconds) {
  return {RowState::done, "", {{"step_time_s", seconds}, {"memory", {{"peak_bytes", 5e9}}}}};
}

std::vector<Point> points_of(const Store& store) {
  std::vector<Point> points;
  store.each([&](Point point, const Row&) { points.push_back(point); });
  return points;
}

TEST(Store, GivesRowsBackToTheLastBitInOrderOfPoints) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store store(scratch.file("a.db"), {{"a", 1}}, grid, false);
  store.put(4, done(0.1 + 0.2));
  store.put(1, {RowState::illegal, "tp must divide \"heads\"", nullptr});
  std::vector<Row> rows;
  store.each([&](Point, const Row& row) { rows.push_back(row); });
  EXPECT_THAT(points_of(store), ElementsAre(1, 4));
  EXPECT_EQ(rows[0].state, RowState::illegal);
  EXPECT_EQ(rows[0].reason, "tp must divide \"heads\"");
  EXPECT_TRUE(rows[0].report.is_null());
  EXPECT_EQ(rows[1].report["step_time_s"].get<double>(), 0.1 + 0.2);
}

TEST(Store, HasColumnsForFieldsAndFigures) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store(scratch.file("a.db"), {}, grid, false).put(3, done(2.5));
  const Database database(scratch.file("a.db"));
  Statement query(database,
                  "SELECT mbs, schedule, peak_memory_bytes, mfu IS NULL FROM rows WHERE step_time_s > 2");
  ASSERT_TRUE(query.step());
  EXPECT_EQ(query.integer(0), 2);
  EXPECT_EQ(query.text(1), "1f1b");
  EXPECT_EQ(query.integer(2), 5'000'000'000);
  EXPECT_EQ(query.integer(3), 1);
}

TEST(Store, OfAnotherSweepIsRefused) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store(scratch.file("a.db"), {{"gbs", 8}}, grid, false).put(0, done(1));
  EXPECT_THROW(Store(scratch.file("a.db"), {{"gbs", 16}}, grid, true), InputError);
}

TEST(Store, IsNotContinuedUnasked) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store(scratch.file("a.db"), {}, grid, false).put(0, done(1));
  EXPECT_THROW(Store(scratch.file("a.db"), {}, grid, false), InputError);
  EXPECT_THAT(Store(scratch.file("a.db"), {}, grid, true).known(), ElementsAre(0));
}

TEST(Store, FailedRowsAreRunAgainAndReplaced) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store store(scratch.file("a.db"), {}, grid, false);
  store.put(0, {RowState::failed, "no memory", nullptr});
  EXPECT_TRUE(store.known().empty());
  store.put(0, done(1));
  EXPECT_THAT(store.known(), ElementsAre(0));
  EXPECT_THAT(points_of(store), ElementsAre(0));
}

TEST(Store, MergesWhatItLacks) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store first(scratch.file("a.db"), {}, grid, false), second(scratch.file("b.db"), {}, grid, false);
  first.put(0, done(1));
  first.put(2, {RowState::failed, "", nullptr});
  for (const Point point : {0, 2, 3}) second.put(point, done(7));
  EXPECT_EQ(first.merge(scratch.file("b.db")).taken, 2);
  std::vector<double> seconds;
  first.each([&](Point, const Row& row) { seconds.push_back(row.report["step_time_s"].get<double>()); });
  EXPECT_THAT(points_of(first), ElementsAre(0, 2, 3));
  EXPECT_THAT(seconds, ElementsAre(1, 7, 7));
}

TEST(Store, IsNotMergedWithItself) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store store(scratch.file("a.db"), {}, grid, false);
  store.put(0, done(1));
  std::filesystem::create_symlink(scratch.file("a.db"), scratch.file("link.db"));
  EXPECT_TRUE(store.merge(scratch.file("a.db")).is_self);
  EXPECT_TRUE(store.merge(scratch.file("link.db")).is_self);
  EXPECT_THAT(points_of(store), ElementsAre(0));
}

// A row that was computed from this file as it is now.
Row read_from(const std::string& file) {
  const ReadRecord record;
  read_text_file(file);
  Row row = done(1);
  row.files = record.files();
  return row;
}

TEST(Store, DropsRowsOfChangedFiles) {
  const Scratch scratch;
  const Grid grid = small_grid();
  const std::string path = scratch.file("rows.db");
  const std::string a = scratch.write("a.csv", "1"), b = scratch.write("b.csv", "1");
  {
    Store store(path, {}, grid, false);
    store.put(0, read_from(a));
    store.put(1, read_from(b));
    store.put(2, done(3));
  }
  scratch.write("b.csv", "2");
  const Store store(path, {}, grid, true);
  EXPECT_THAT(store.known(), ElementsAre(0, 2));
  EXPECT_THAT(points_of(store), ElementsAre(0, 2));
  EXPECT_EQ(store.dropped(), 1);
  EXPECT_THAT(store.changed(), ElementsAre(b));
}

TEST(Store, DropsRowsOfFilesThatCameOrWent) {
  const Scratch scratch;
  const Grid grid = small_grid();
  const std::string came = scratch.file("came.json"), went = scratch.write("went.json", "{}");
  {
    Store store(scratch.file("rows.db"), {}, grid, false);
    const ReadRecord record;
    EXPECT_THROW(read_text_file(came), InputError);
    store.put(0, {RowState::illegal, "cannot read", nullptr, record.files()});
    store.put(1, read_from(went));
  }
  scratch.write("came.json", "{}");
  std::filesystem::remove(went);
  const Store store(scratch.file("rows.db"), {}, grid, true);
  EXPECT_TRUE(store.known().empty());
  EXPECT_THAT(store.changed(), testing::UnorderedElementsAre(came, went));
}

// The store as another build's executable would have left it.
void pretend_another_build(const std::string& path) {
  Database(path).execute("UPDATE rows SET inputs = replace(inputs, '" + program_digest() +
                         "', '0123456789abcdef')");
}

TEST(Store, DropsRowsOfAnotherBuild) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store(scratch.file("a.db"), {}, grid, false).put(0, done(1));
  pretend_another_build(scratch.file("a.db"));
  const Store store(scratch.file("a.db"), {}, grid, true);
  EXPECT_TRUE(store.known().empty());
  EXPECT_EQ(store.dropped(), 1);
  EXPECT_THAT(store.changed(), ElementsAre("the program"));
}

// A bit of any column that a disk or another program changed.
TEST(Store, DropsRowsThatTheirDigestDoesNotMatch) {
  const Scratch scratch;
  const Grid grid = small_grid();
  for (const char* change : {"report = replace(report, 'step', 'stop')", "reason = 'x'", "state = 'illegal'",
                             "step_time_s = step_time_s + 1", "mbs = 3", "digest = NULL"}) {
    const std::string path = scratch.file("rows.db");
    std::filesystem::remove(path);
    Store(path, {}, grid, false).put(0, done(1));
    Store(path, {}, grid, true).put(1, done(2));
    Database(path).execute(std::string("UPDATE rows SET ") + change + " WHERE point = 0");
    Store taking(scratch.file("taking.db"), {}, grid, true);
    EXPECT_EQ(taking.merge(path).stale, 1) << change;
    EXPECT_THAT(points_of(taking), ElementsAre(1)) << change;
    const Store store(path, {}, grid, true);
    EXPECT_THAT(points_of(store), ElementsAre(1)) << change;
    EXPECT_EQ(store.dropped(), 1) << change;
    EXPECT_THAT(store.changed(), ElementsAre("the stored row")) << change;
  }
}

TEST(Store, LeavesStaleRowsOfOthers) {
  const Scratch scratch;
  const Grid grid = small_grid();
  const std::string file = scratch.write("a.csv", "1");
  {
    Store other(scratch.file("other.db"), {}, grid, false);
    other.put(1, read_from(file));
    other.put(2, done(2));
    Store(scratch.file("old.db"), {}, grid, false).put(3, done(3));
  }
  pretend_another_build(scratch.file("old.db"));
  scratch.write("a.csv", "2");
  Store store(scratch.file("a.db"), {}, grid, false);
  const Store::Merged merged = store.merge(scratch.file("other.db"));
  EXPECT_EQ(merged.taken, 1);
  EXPECT_EQ(merged.stale, 1);
  EXPECT_EQ(store.merge(scratch.file("old.db")).stale, 1);
  EXPECT_THAT(points_of(store), ElementsAre(2));
}

TEST(Store, ThatCannotBeWrittenSaysWhy) {
  const Scratch scratch;
  const Grid grid = small_grid();
  const auto why = [&](const std::string& path) -> std::string {
    try {
      Store(path, {}, grid, false);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "none";
  };
  std::filesystem::create_symlink("loop.db", scratch.file("loop.db"));
  EXPECT_THAT(why(scratch.file("loop.db")), testing::HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(why(scratch.file(std::string(300, 'n'))), testing::HasSubstr("File name too long"));
  EXPECT_THAT(why(scratch.path()), testing::HasSubstr("Is a directory"));
  EXPECT_THAT(why(scratch.file("none/a.db")), testing::HasSubstr("No such file or directory"));
}

TEST(Store, DoesNotMergeAnotherSweepNorNothing) {
  const Scratch scratch;
  const Grid grid = small_grid();
  Store store(scratch.file("a.db"), {}, grid, false);
  Store(scratch.file("b.db"), {{"gbs", 16}}, grid, false).put(1, done(1));
  EXPECT_THROW(store.merge(scratch.file("b.db")), InputError);
  EXPECT_THROW(store.merge(scratch.file("missing.db")), InputError);
  EXPECT_TRUE(points_of(store).empty());
}

TEST(Store, ThatIsNoDatabaseIsAnError) {
  const Scratch scratch;
  const Grid grid = small_grid();
  std::ofstream(scratch.file("a.db")) << "mbs,schedule\n1,gpipe\n1,1f1b\n";
  EXPECT_THROW(Store(scratch.file("a.db"), {}, grid, true), std::runtime_error);
}

// Writes rows one by one and tells of each through a pipe once it is stored.
[[noreturn]] void write_rows(const std::string& path, const Grid& grid, int tell) {
  Store store(path, {}, grid, true);
  const std::set<Point> known = store.known();
  for (Point point = 0; point < grid.size(); ++point) {
    if (known.contains(point)) continue;
    store.put(point, done(static_cast<double>(point)));
    if (write(tell, &point, sizeof point) != sizeof point) _exit(1);
  }
  _exit(0);
}

TEST(Store, LosesNoKnownRowToAKillAtAnyMoment) {
  const Scratch scratch;
  Grid grid;
  grid.fields.push_back({"x", "/x", {}});
  for (int i = 0; i < 300; ++i) grid.fields[0].values.push_back(i);
  program_digest();  // found once: it takes longer than some children live
  std::mt19937 random(7);
  std::set<Point> told;
  int kills = 0;
  for (bool ended = false; !ended;) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t writer = fork();
    if (writer == 0) write_rows(scratch.file("a.db"), grid, ends[1]);
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill(writer, SIGKILL);
    int status = 0;
    waitpid(writer, &status, 0);
    for (Point point = 0; read(ends[0], &point, sizeof point) == sizeof point;)
      EXPECT_TRUE(told.insert(point).second) << "row " << point << " was written twice";
    close(ends[0]);
    const std::set<Point> known = Store(scratch.file("a.db"), {}, grid, true).known();
    for (const Point point : told) EXPECT_TRUE(known.contains(point)) << point;
    told = known;
    kills += WIFSIGNALED(status);
    ended = static_cast<Point>(known.size()) == grid.size();
  }
  EXPECT_GT(kills, 0);
}

}  // namespace
}  // namespace rehearse
