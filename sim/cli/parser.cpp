#include "cli/parser.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

#include "cli/help.h"
#include "cli/verbs.h"

namespace rehearse {

namespace {

constexpr std::string_view kMore = ", more";
constexpr std::size_t kColumn = 33;  // start of the texts
const char* const kOwn = "Options";  // CLI11's group for options without one

// The usual name; with `all` every other name too.
std::string names_of(const CLI::Option& option, bool all) {
  if (all) return option.get_name(false, true);
  std::string names;
  for (const std::string& name : option.get_snames()) names += "-" + name + ",";
  return names + "--" + option.get_lnames().front();
}

// Not wrapped: print_help() does that.
std::string line_of(const CLI::Option& option, bool all) {
  std::string names = "  " + names_of(option, all);
  if (!option.get_option_text().empty()) names += " " + option.get_option_text();
  const bool fits = names.size() + 2 <= kColumn;
  return names + (fits ? std::string(kColumn - names.size(), ' ') : "\n" + std::string(kColumn, ' ')) +
         option.get_description() + "\n";
}

// For verbs with many options: --help shows the daily ones under headings. --help-all shows all, with their
// other names.
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

// CLI::Range() rejects values outside the range; NaN passes its test.
CLI::Validator between(double least, double most) {
  return {[=](const std::string& text) {
            double number = 0;
            const bool inside = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
            return inside ? std::string()
                          : fmt::format("must be a number from {} to {} (found {})", least, most, text);
          },
          ""};
}

CLI::Option* declared(CLI::App& app, const VerbOption& option) {
  const std::string names = fmt::format("{}", fmt::join(option.names, ","));
  return std::visit(
      [&](const auto& target) -> CLI::Option* {
        using Target = std::decay_t<decltype(target)>;
        if constexpr (std::is_same_v<Target, bool*>)
          return app.add_flag(names, *target, option.help);
        else if constexpr (std::is_pointer_v<Target>)
          return app.add_option(names, *target, option.help);
        else
          return app.add_option_function<std::vector<std::string>>(names, target, option.help);
      },
      option.target);
}

void set_arity(CLI::Option& declared, Arity arity) {
  if (arity == Arity::at_most_one) declared.expected(0, 1);
  if (arity == Arity::two) declared.expected(2);
  if (arity == Arity::list) declared.delimiter(',');
  if (arity == Arity::one_each_time || arity == Arity::list)
    declared.expected(1)->take_all()->allow_extra_args(false);
}

void declare(CLI::App& app, const VerbOption& option) {
  CLI::Option& of = *declared(app, option);
  set_arity(of, option.arity);
  if (!option.value.empty()) of.option_text(option.value);
  if (!option.words.empty()) of.check(CLI::IsMember(option.words));
  if (option.bounds) of.check(between(option.bounds->first, option.bounds->second));
  if (option.refuse) of.check(option.refuse, "");
  of.required(option.required);
  if (option.group) of.group(std::string(heading(*option.group)) + (option.daily ? "" : std::string(kMore)));
}

// Adds the verb to the parser. `exit_code` receives its result.
void declare(CLI::App& above, const Verb& verb, int& exit_code) {
  CLI::App& app = *above.add_subcommand(verb.name, verb.help);
  for (const VerbOption& option : verb.options) declare(app, option);
  for (const VerbOption& option : verb.options) {
    CLI::Option* const of = app.get_option(option.names.front());
    if (!option.needs.empty()) of->needs(app.get_option(option.needs));
    if (!option.excludes.empty()) of->excludes(app.get_option(option.excludes));
  }
  if (!verb.footer.empty()) app.footer(verb.footer);  // else that of the verb above
  for (const Verb& below : verb.verbs) declare(app, below, exit_code);
  if (!verb.verbs.empty()) app.require_subcommand(verb.run ? 0 : 1, 1);
  if (verb.run)
    app.callback([&] {
      if (app.get_subcommands().empty()) exit_code = verb.run();
    });
}

UsageError usage_error(const CLI::App& parser, const Verb& program, const CLI::ParseError& error,
                       std::vector<std::string> unknown) {
  UsageError usage(error.what());
  usage.unknown = std::move(unknown);
  const CLI::App* app = &parser;
  const Verb* verb = &program;
  while (!app->get_subcommands().empty()) {
    app = app->get_subcommands().front();
    verb = verb->find_verb(app->get_name());
    usage.chosen.push_back(verb);
  }
  for (const VerbOption& option : verb->options)
    if (const auto& results = app->get_option(option.names.front())->results(); !results.empty())
      usage.given[option.names.front()] = results.back();
  return usage;
}

}  // namespace

int parse_and_run(const Verb& program, std::vector<std::string> words) {
  CLI::App parser(program.help, program.name);
  int exit_code = kDone;
  bool json = false;
  parser.formatter(std::make_shared<GroupedHelp>());  // verbs inherit it and the flags of help
  parser.set_help_flag("-h,--help", help_flags()[0].help);
  parser.set_help_all_flag("--help-all", help_flags()[1].help);
  parser.set_version_flag(
      "--version", [&json] { return json ? version_json() : version_line(); },
      "print the version; with --json before it, of everything inside");
  parser.add_flag("--json", json, "with --version: as JSON")->trigger_on_parse();
  parser.require_subcommand(1);
  parser.footer(program.footer);
  for (const Verb& verb : program.verbs) declare(parser, verb, exit_code);
  try {
    std::ranges::reverse(words);  // the parser expects this order
    parser.parse(words);
  } catch (const CLI::CallForHelp&) {
    print_help(parser.help());
  } catch (const CLI::CallForAllHelp&) {
    print_help(parser.help("", CLI::AppFormatMode::All));
  } catch (const CLI::CallForVersion& version) {
    return parser.exit(version);
  } catch (const CLI::ExtrasError& error) {
    throw usage_error(parser, program, error, parser.remaining(true));
  } catch (const CLI::ParseError& error) {
    throw usage_error(parser, program, error, {});
  }
  return exit_code;
}

}  // namespace rehearse
