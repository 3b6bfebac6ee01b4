#include "sweep/plot/sweep_page.h"

#include <fmt/core.h>

#include "draw/html/assets.h"
#include "draw/html/base64.h"
#include "draw/html/page.h"

namespace rehearse::plot {

namespace {

Json row_json(const PlotRow& row) {
  Json json = {{"values", row.values}, {"state", to_string(row.state)}, {"reason", row.reason}};
  if (row.fastest) json["fastest"] = true;
  if (!row.has_report) return json;
  json["step_time_s"] = row.step_time_s;
  json["tokens_per_s_per_gpu"] = row.tokens_per_s_per_gpu;
  json["mfu"] = row.mfu;
  json["bubble"] = row.bubble;
  json["needed_bytes"] = row.needed_bytes;
  return json;
}

}  // namespace

std::string write_sweep_page(const Grid& grid, const PlotRows& rows, std::optional<PlotKind> kind,
                             const std::string& command) {
  Json data = {{"command", command},
               {"held", rows.held},
               {"picture", html::base64(draw_plot(grid, rows, kind))},
               {"fields", Json::array()},
               {"rows", Json::array()}};
  std::vector<std::string> names;
  for (const SweptField& field : grid.fields) {
    data["fields"].push_back({{"name", field.name}, {"values", field.values}});
    names.push_back(field.name);
  }
  for (const PlotRow& row : rows.rows) data["rows"].push_back(row_json(row));
  html::Page page = html::shared_page();
  page.title = fmt::format("Sweep over {}", join(names));
  page.data = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  page.scripts.push_back(html::kSweepJs);
  return html::write_page(page);
}

}  // namespace rehearse::plot
