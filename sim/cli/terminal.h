// How wide is the output device?
#pragma once

#include <string>

namespace rehearse {

// Columns of standard output's terminal, or the value of COLUMNS; 0 where there is neither.
std::size_t terminal_columns();

// The first `columns` characters; the last three are dots where some were cut off. 0 columns: all.
std::string cut_to(const std::string& text, std::size_t columns);

// Characters, each taken as one column wide.
std::size_t characters(const std::string& text);

// Help wrapped at words to fit. Descriptions are indented under themselves; commands continue after a
// backslash, so that they can still be copied. Lines that cannot be split stay.
std::string help_in_columns(const std::string& help, std::size_t columns);

}  // namespace rehearse
