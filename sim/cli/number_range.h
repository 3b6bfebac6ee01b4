// Is what a flag was given a number within bounds?
#pragma once

#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <string>

namespace rehearse {

// CLI::Range() asks what lies outside, which a NaN does not.
inline CLI::Validator between(double least, double most) {
  const auto refuse = [=](const std::string& text) {
    double number = 0;
    const bool inside = CLI::detail::lexical_cast(text, number) && number >= least && number <= most;
    return inside ? std::string()
                  : fmt::format("must be a number from {:g} to {:g} (found {})", least, most, text);
  };
  return CLI::Validator(refuse, fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

}  // namespace rehearse
