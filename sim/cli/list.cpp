#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/names.h"
#include "base/say.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "scenario/name_lists.h"

namespace rehearse {

namespace {

struct ListOptions {
  std::string kind;
  bool json = false;
};

// Columns two spaces apart, cut to the terminal's width. Piped output is complete.
void print_columns(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], characters(row[i]));
  const std::size_t columns = terminal_columns();
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i + 1 == row.size() ? row[i] : row[i] + std::string(widths[i] + 2 - characters(row[i]), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    say("{}\n", cut_to(line, columns));
  }
}

void print_kinds(bool json) {
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows = {{"kind", "names", "what"}};
  for (const NameList& list : name_lists()) {
    const std::size_t count = list.names().size();
    rows.push_back({list.kind, std::to_string(count), list.what});
    all.push_back({{"kind", list.kind}, {"names", count}, {"what", list.what}});
  }
  if (json) return fmt::print("{}\n", all.dump(2));
  print_columns(rows);
  say("`rehearse list KIND` prints one line each.\n");
}

const NameList& list_named(const std::string& kind) {
  std::vector<std::string> kinds;
  for (const NameList& list : name_lists()) {
    if (list.kind == kind) return list;
    kinds.push_back(list.kind);
  }
  throw InputError({"command line", "KIND", "must be one of " + join(kinds),
                    fmt::format("found \"{}\"", kind), join(similar_names(kind, kinds, 1))});
}

void print_list(const ListOptions& options) {
  if (options.kind.empty()) return print_kinds(options.json);
  const NameList& list = list_named(options.kind);
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows = {list.columns};
  for (ListedName& entry : list.entries()) {
    rows.push_back(std::move(entry.cells));
    all.push_back(std::move(entry.json));
  }
  options.json ? fmt::print("{}\n", all.dump(2)) : print_columns(rows);
}

}  // namespace

Verb list_verb() {
  const auto options = std::make_shared<ListOptions>();
  Verb verb{"list", "models, clusters, profiles, schedules, frameworks: one line each"};
  verb.add({{"kind"},
            &options->kind,
            "what to list; left out: the kinds",
            "[models|clusters|profiles|schedules|frameworks]"});
  verb.add({{"--json"}, &options->json, "print an array of objects"});
  verb.footer =
      "Lines are cut to the terminal's width; a pipe, a file and --json get them whole.\n"
      "Examples:\n"
      "  rehearse list models\n"
      "  rehearse list clusters --json\n"
      "  rehearse list profiles | grep h100";
  verb.run = [options] {
    print_list(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
