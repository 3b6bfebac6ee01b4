#include "sweep/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/error.h"
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
  EXPECT_EQ(first.merge(scratch.file("b.db")), 2);
  std::vector<double> seconds;
  first.each([&](Point, const Row& row) { seconds.push_back(row.report["step_time_s"].get<double>()); });
  EXPECT_THAT(points_of(first), ElementsAre(0, 2, 3));
  EXPECT_THAT(seconds, ElementsAre(1, 7, 7));
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
