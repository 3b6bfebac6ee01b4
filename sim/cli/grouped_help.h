// How does a verb with many options explain itself? --help shows the daily ones under headings; --help-all
// shows all, with their other names.
#pragma once

#include <memory>

#include "plan/fields.h"

namespace CLI {
class App;
class Option;
class FormatterBase;
}  // namespace CLI

namespace rehearse {

void put_in_group(CLI::Option& option, HelpGroup group, bool daily);

// Of the whole program; verbs inherit it, and --help-all with it, so it comes before they are added.
void use_grouped_help(CLI::App& program);

}  // namespace rehearse
