// Which values does "1,2,4" or "2:32:*2" stand for?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// The values of a comma-separated list; each item is a value or a range of numbers:
//   from:to      steps of one          2:4        is 2,3,4
//   from:to:+s   steps of s            256:1024:+256
//   from:to:*f   factors of f          2:32:*2    is 2,4,8,16,32
// `to` is taken when a step meets it. Values that hold commas themselves are divided by ';' instead, which
// `holds_commas` says; such values are never ranges. InputError naming `field` for an empty item, a value
// that comes twice, a range that does not end, that runs backwards or has more than 100,000 values.
std::vector<std::string> parse_values(const std::string& field, const std::string& text, bool holds_commas);

}  // namespace rehearse
