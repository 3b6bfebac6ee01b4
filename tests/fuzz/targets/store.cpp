#include "sweep/store.h"

#include <sstream>

#include "base/read_record.h"
#include "cli/sweep_table.h"
#include "fuzz/folder.h"
#include "fuzz/target.h"
#include "sweep/export.h"
#include "sweep/plot/sweep_page.h"

namespace rehearse::fuzz {

namespace {

// In every way; not all of them suit these fields.
void draw(const Grid& grid, const plot::PlotRows& rows) {
  for (const plot::PlotKind kind : plot::plot_kinds()) takes([&] { plot::draw_plot(grid, rows, kind); });
  plot::write_sweep_page(grid, rows, std::nullopt, "rehearse sweep");
}

// The rows of an input are this program's where its digest stands in their place.
std::string as_written_here(std::string input) {
  const std::string any = "0123456789abcdef", &own = program_digest();
  for (std::size_t at = 0; (at = input.find(any, at)) != std::string::npos; at += own.size())
    input.replace(at, any.size(), own);
  return input;
}

// Like `sweep` with a store to continue or to merge; adds a new row to the existing ones.
const Target kStore("store", [](const std::string& input) {
  static const Folder folder;
  static const Grid grid = {
      {{"mbs", "/plan/micro_batch", {1, 2, 4}}, {"schedule", "/plan/schedule", {"gpipe", "1f1b"}}}};
  const Json identity = {{"model", "gpt-10m"}};
  folder.clear();
  folder.write("rows.db", as_written_here(input));
  const std::string path = folder / "rows.db";
  Store store(path, identity, grid, true), other(":memory:", identity, grid, true);
  other.merge(path);
  if (!store.known().contains(5)) store.put(5, {RowState::illegal, "tp must divide heads", nullptr});
  std::ostringstream out;
  write_csv(out, store, grid);
  write_jsonl(out, other, grid);
  sweep_table(store, grid);
  draw(grid, plot::read_rows(store, grid));
});

}  // namespace

}  // namespace rehearse::fuzz
