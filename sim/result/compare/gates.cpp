#include "result/compare/gates.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <string_view>

namespace rehearse {

namespace {

Gate parse_gate(std::string_view text) {
  const auto fail = [&](const char* rule) {
    throw InputError({"command line", "--fail-above", rule, fmt::format("found \"{}\"", text),
                      "5% or step_time_s=5%,bubble=10%"});
  };
  const std::size_t equals = text.find('=');
  std::string_view number = equals == std::string_view::npos ? text : text.substr(equals + 1);
  const std::string_view name =
      equals == std::string_view::npos ? std::string_view("step_time_s") : text.substr(0, equals);
  if (name.empty()) fail("a gate names a quantity before the =");
  if (!number.ends_with('%')) fail("a gate is a percentage");
  number.remove_suffix(1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(percent) || percent < 0)
    fail("a gate is a percentage, not negative");
  return {std::string(name), percent / 100};
}

bool covers(const Gate& gate, const std::string& name) {
  if (!name.starts_with(gate.name)) return false;
  const char next = name.size() > gate.name.size() ? name[gate.name.size()] : '.';
  return next == '.' || next == '_';
}

}  // namespace

std::vector<Gate> parse_gates(const std::string& text) {
  std::vector<Gate> gates;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    gates.push_back(parse_gate(std::string_view(text).substr(begin, end - begin)));
    begin = end + 1;
  }
  return gates;
}

std::vector<std::string> beyond_gates(const ReportComparison& comparison, const std::vector<Gate>& gates) {
  std::vector<std::string> beyond, names;
  for (const QuantityPair& pair : comparison.pairs) {
    names.push_back(pair.name.substr(0, pair.name.find_first_of("._")));
    names.push_back(pair.name);
  }
  for (const Gate& gate : gates) {
    bool named = false;
    for (const QuantityPair& pair : comparison.pairs) {
      if (!covers(gate, pair.name)) continue;
      named = true;
      if (!pair.comparable) continue;
      const std::optional<double> error = pair.error();
      if (error && std::abs(*error) <= gate.most) continue;
      const std::string found =
          error ? fmt::format("differs by {:+.2f} %", 100 * *error) : "has nothing to be compared with";
      beyond.push_back(fmt::format("{} {}, {:g} % allowed", pair.name, found, 100 * gate.most));
    }
    if (!named)
      throw InputError({"command line", "--fail-above", "names no quantity of these reports",
                        fmt::format("found \"{}\"", gate.name), nearest_name(gate.name, names)});
  }
  return beyond;
}

}  // namespace rehearse
