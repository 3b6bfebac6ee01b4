#include "sweep/row.h"

namespace rehearse {

std::string to_string(RowState state) {
  switch (state) {
    case RowState::done:
      return "done";
    case RowState::illegal:
      return "illegal";
    case RowState::does_not_fit:
      return "does not fit";
    case RowState::missing:
      return "missing calibration";
    case RowState::failed:
      return "failed";
  }
  return "";
}

std::string write_row(const Row& row) {
  const Json json = {{"state", static_cast<int>(row.state)},
                     {"reason", row.reason},
                     {"report", row.report},
                     {"files", row.files}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Row read_row(const std::string& text) {
  const Json json = Json::parse(text);
  return {static_cast<RowState>(json.at("state").get<int>()), json.at("reason").get<std::string>(),
          json.at("report"), json.at("files").get<FileDigests>()};
}

}  // namespace rehearse
