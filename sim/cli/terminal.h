// How wide is what is printed on?
#pragma once

#include <string>

namespace rehearse {

// Columns of the terminal that standard output goes to, or what COLUMNS says; 0 where there is neither.
std::size_t terminal_columns();

// The first `columns` characters, of which the last three are dots where some were cut off. 0 columns: all.
std::string cut_to(const std::string& text, std::size_t columns);

// Characters, each taken as one column wide.
std::size_t characters(const std::string& text);

// Help whose lines are broken at words to fit: descriptions go on below themselves, commands after a
// backslash, so that they can still be copied. Lines without a place to break stay.
std::string help_in_columns(const std::string& help, std::size_t columns);

}  // namespace rehearse
