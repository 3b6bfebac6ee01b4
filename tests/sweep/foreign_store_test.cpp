// A file given as a store may have been made by anybody.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/error.h"
#include "scratch.h"
#include "small_grid.h"
#include "sweep/store.h"

namespace rehearse {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Row done() {
  return {RowState::done, "", {{"step_time_s", 0.5}, {"memory", {{"peak_bytes", 5e9}}}}};
}

void seconds_of(const Store& store) {
  store.each([](Point, const Row& row) {
    if (row.report.is_object()) row.report.at("step_time_s").get<double>();
  });
}

class ForeignStore : public ::testing::Test {
 protected:
  // A store of two rows, changed by someone's SQL.
  std::string changed(const std::string& sql) {
    std::filesystem::remove(path_);
    {
      Store store(path_, {}, grid_, true);
      store.put(0, done());
      store.put(1, {RowState::illegal, "tp must divide heads", nullptr});
    }
    Database(path_).execute("PRAGMA writable_schema = ON;" + sql);
    return path_;
  }

  // Both to continue it and to merge it must be refused.
  void expect_refused(const std::string& path, const std::string& why) {
    EXPECT_THAT(message([&] { Store(path, {}, grid_, true); }), HasSubstr(why));
    Store other(scratch_.file("other.db"), {}, grid_, true);
    EXPECT_THAT(message([&] { other.merge(path); }), AllOf(HasSubstr(why), HasSubstr(path)));
  }

  template <typename Action>
  std::string message(const Action& action) {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return "none";
  }

  const Scratch scratch_;
  const Grid grid_ = small_grid();
  const std::string path_ = scratch_.file("a.db");
};

TEST_F(ForeignStore, ThatIsNoDatabaseIsRefused) {
  std::ofstream(path_) << std::string(5000, 'x');
  expect_refused(path_, "no database");
}

TEST_F(ForeignStore, OfOtherTablesIsRefused) {
  Database(path_).execute("CREATE TABLE rows (point INTEGER PRIMARY KEY, state TEXT)");
  expect_refused(path_, "is no store of a sweep");
}

TEST_F(ForeignStore, WithAViewInPlaceOfItsIdentityIsRefused) {
  Database(path_).execute(
      "CREATE VIEW sweep AS WITH RECURSIVE n(identity) AS (SELECT 1 UNION ALL SELECT identity + 1 FROM n) "
      "SELECT max(identity) AS identity FROM n");
  expect_refused(path_, "is no store of a sweep");
}

TEST_F(ForeignStore, WithATriggerIsRefused) {
  expect_refused(changed("CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END"),
                 "holds other tables");
}

TEST_F(ForeignStore, WithOtherColumnsIsRefused) {
  expect_refused(changed("ALTER TABLE rows ADD COLUMN more TEXT"), "holds other tables");
}

TEST_F(ForeignStore, WithRowsBeyondItsSweepIsRefused) {
  expect_refused(changed("UPDATE rows SET point = 6 WHERE point = 1"), "beyond the points");
  expect_refused(changed("UPDATE rows SET point = -1 WHERE point = 1"), "beyond the points");
}

TEST_F(ForeignStore, WhosePagesPointAtEachOtherIsRefused) {
  const std::string path = changed("");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  constexpr std::streamoff kPage = 4096, kRows = 2;  // the table of rows lies on the third page
  std::string page(static_cast<std::size_t>(kPage), '\0');
  page[0] = 5;  // within a table's tree, not a leaf
  page[3] = 0;  // no cells,
  page[5] = page[6] = 0;
  page[11] = kRows + 1;  // and below it itself
  file.seekp(kPage * kRows);
  file.write(page.data(), kPage);
  file.close();
  expect_refused(path, "damaged");
}

TEST_F(ForeignStore, CutAnywhereIsReadOrRefused) {
  const std::string path = changed("");
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  int refused = 0;
  for (std::size_t size = 1; size < whole.str().size(); size += 97) {
    std::ofstream(path, std::ios::binary) << whole.str().substr(0, size);
    refused += message([&] { Store(path, {}, grid_, true).each([](Point, const Row&) {}); }) != "none";
  }
  EXPECT_GT(refused, 100);
}

TEST_F(ForeignStore, RowsThatThisProgramDidNotWriteAreRefused) {
  const std::pair<const char*, const char*> rows[] = {
      {"state = 'sleeping'", "unknown state"},
      {"report = '{'", "not valid JSON"},
      {"report = 'null', state = 'done'", "lacks a field"},
      {"report = '{\"step_time_s\": 1e999}'", "not valid JSON"},
      {"report = '[1]'", "lacks a field"},
      {"report = '{\"step_time_s\": \"soon\"}'", "another type"}};
  std::string columns = "point";
  for (const SweptField& field : grid_.fields) columns += ", \"" + field.name + "\"";
  columns +=
      ", state, reason, step_time_s, tokens_per_s_per_gpu, mfu, bubble_fraction, peak_memory_bytes, "
      "inputs, report";
  for (const auto& [change, why] : rows) {
    const Store store(changed(std::string("UPDATE rows SET ") + change + " WHERE point = 1;" +
                              "UPDATE rows SET digest = row_digest(" + columns + ")"),
                      {}, grid_, true);
    const std::string said = message([&] { seconds_of(store); });
    EXPECT_THAT(said, HasSubstr(why)) << change;
    EXPECT_THAT(said, HasSubstr("a.db")) << change;
  }
}

}  // namespace
}  // namespace rehearse
