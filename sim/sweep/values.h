// Which values do "1,2,4" or "2:32:*2" mean?
#pragma once

#include <string>
#include <vector>

namespace rehearse {

// The values of a comma-separated list; each item is a value or a range of numbers:
//   from:to      steps of one          2:4        is 2,3,4
//   from:to:+s   steps of s            256:1024:+256
//   from:to:*f   factors of f          2:32:*2    is 2,4,8,16,32
// `to` is included when a step hits it. With `holds_commas`, values contain commas themselves and are
// separated by ';'; such values are never ranges. InputError naming `field` for an empty item, a repeated
// value, and a range that is endless, descending or longer than 100,000 values.
std::vector<std::string> parse_values(const std::string& field, const std::string& text, bool holds_commas);

}  // namespace rehearse
