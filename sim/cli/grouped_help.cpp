#include "cli/grouped_help.h"

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>

namespace rehearse {

namespace {

constexpr std::string_view kMore = ", more";
constexpr std::size_t kColumn = 33;  // where texts begin
const char* const kOwn = "Options";  // CLI11's group of what no group was named for

// The name that people type; with `all` every other one too.
std::string names_of(const CLI::Option& option, bool all) {
  if (all) return option.get_name(false, true);
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ",";
  return names + "--" + option.get_lnames().front();
}

// Not broken to a width: print_help() does that.
std::string line_of(const CLI::Option& option, bool all) {
  std::string names = "  " + names_of(option, all);
  if (!option.get_option_text().empty()) names += " " + option.get_option_text();
  const bool fits = names.size() + 2 <= kColumn;
  return names + (fits ? std::string(kColumn - names.size(), ' ') : "\n" + std::string(kColumn, ' ')) +
         option.get_description() + "\n";
}

class GroupedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    const std::vector<std::string> groups = app->get_groups();
    const bool is_grouped =
        std::ranges::any_of(groups, [](const std::string& group) { return group.ends_with(kMore); });
    if (!is_grouped || mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, name, mode);
    const bool all = mode == CLI::AppFormatMode::All;
    std::string text = make_description(app) + usage(*app, name);
    for (std::size_t i = 0; i <= static_cast<std::size_t>(HelpGroup::output); ++i)
      text += group_of(*app, std::string(heading(static_cast<HelpGroup>(i))), all);
    text += group_of(*app, kOwn, all);
    if (!all) text += fmt::format("`{} --help-all` shows {} more options.\n", name, hidden(*app));
    return text + app->get_footer() + "\n";
  }

 private:
  using Options = std::vector<const CLI::Option*>;

  static Options of(const CLI::App& app, const std::string& group, bool all) {
    return app.get_options([&](const CLI::Option* option) {
      const bool more = option->get_group() == group + std::string(kMore);
      const bool is_help = option == app.get_help_ptr() || option == app.get_help_all_ptr();
      return !option->get_positional() && !is_help && (option->get_group() == group || (all && more));
    });
  }

  static std::string usage(const CLI::App& app, const std::string& name) {
    std::string places;
    for (const CLI::Option* option : app.get_options())
      if (option->get_positional()) places += " " + option->get_option_text();
    return fmt::format("Usage: {}{} [OPTIONS]\n", name, places);
  }

  static std::string group_of(const CLI::App& app, const std::string& group, bool all) {
    const Options options = of(app, group, all);
    if (options.empty()) return "";
    std::string text = (group == kOwn ? std::string("Of this verb") : group) + "\n";
    for (const CLI::Option* option : options) text += line_of(*option, all);
    return text;
  }

  static std::size_t hidden(const CLI::App& app) {
    return app.get_options([](const CLI::Option* option) { return option->get_group().ends_with(kMore); })
        .size();
  }
};

}  // namespace

void put_in_group(CLI::Option& option, HelpGroup group, bool daily) {
  option.group(std::string(heading(group)) + (daily ? "" : std::string(kMore)));
}

void use_grouped_help(CLI::App& program) {
  program.formatter(std::make_shared<GroupedHelp>());
  program.set_help_all_flag("--help-all", "show all options");
}

}  // namespace rehearse
