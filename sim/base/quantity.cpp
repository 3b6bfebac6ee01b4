#include "base/quantity.h"

#include <fmt/core.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace rehearse {

namespace {

using Suffix = std::pair<std::string_view, double>;

constexpr std::array kBytes = {Suffix{"TiB", 1099511627776.0},
                               Suffix{"GiB", 1073741824.0},
                               Suffix{"MiB", 1048576.0},
                               Suffix{"KiB", 1024.0},
                               Suffix{"PB", 1e15},
                               Suffix{"TB", 1e12},
                               Suffix{"GB", 1e9},
                               Suffix{"MB", 1e6},
                               Suffix{"kB", 1e3},
                               Suffix{"KB", 1e3},
                               Suffix{"B", 1.0}};
constexpr std::array kBits = {Suffix{"Tbps", 1e12 / 8}, Suffix{"Gbps", 1e9 / 8}, Suffix{"Mbps", 1e6 / 8},
                              Suffix{"kbps", 1e3 / 8}, Suffix{"bps", 1.0 / 8}};
constexpr std::array kSeconds = {Suffix{"ms", 1e-3}, Suffix{"us", 1e-6}, Suffix{"ns", 1e-9},
                                 Suffix{"s", 1.0}};
constexpr std::array kFlops = {Suffix{"EFLOPS", 1e18}, Suffix{"PFLOPS", 1e15}, Suffix{"TFLOPS", 1e12},
                               Suffix{"GFLOPS", 1e9},  Suffix{"MFLOPS", 1e6},  Suffix{"FLOPS", 1.0}};

template <std::size_t N>
std::optional<double> scale_of(std::string_view suffix, const std::array<Suffix, N>& table) {
  for (const auto& [name, scale] : table) {
    if (suffix == name) return scale;
  }
  return std::nullopt;
}

std::optional<double> scale_of(std::string_view suffix, Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return scale_of(suffix, kBytes);
    case Dimension::seconds:
      return scale_of(suffix, kSeconds);
    case Dimension::flops:
      return scale_of(suffix, kFlops);
    case Dimension::bytes_per_second:
      if (suffix.ends_with("/s")) return scale_of(suffix.substr(0, suffix.size() - 2), kBytes);
      return scale_of(suffix, kBits);
    case Dimension::microseconds:
    case Dimension::per_second:
    case Dimension::hertz:
    case Dimension::one:
      break;
  }
  return std::nullopt;
}

std::string scaled(double value, std::string_view base) {
  static constexpr std::array prefixes = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t prefix = 0;
  while (std::abs(value) >= 999.5 && prefix + 1 < prefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g} {}{}", value, prefixes[prefix], base);
}

}  // namespace

std::optional<double> parse_decimal(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  std::string_view suffix = text.substr(static_cast<std::size_t>(rest - text.data()));
  while (suffix.starts_with(' ')) suffix.remove_prefix(1);
  if (suffix.empty()) return value == 0 ? std::optional<double>(0) : std::nullopt;
  const std::optional<double> scale = scale_of(suffix, dimension);
  if (!scale || !std::isfinite(value * *scale)) return std::nullopt;
  return value * *scale;
}

std::string_view examples(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "80GB, 64MiB";
    case Dimension::bytes_per_second:
      return "50GB/s, 400Gbps";
    case Dimension::seconds:
      return "2.5us, 10ms";
    case Dimension::flops:
      return "989TFLOPS";
    case Dimension::microseconds:
    case Dimension::per_second:
    case Dimension::hertz:
    case Dimension::one:
      break;
  }
  return "";
}

std::string format_bytes(double bytes) {
  return scaled(bytes, "B");
}

std::string format_rate(double bytes_per_second) {
  return scaled(bytes_per_second, "B/s");
}

std::string format_quantity(double value, Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return format_bytes(value);
    case Dimension::bytes_per_second:
      return format_rate(value);
    case Dimension::seconds:
      return format_seconds(value);
    case Dimension::flops:
      return scaled(value, "FLOPS");
    case Dimension::microseconds:
      return fmt::format("{:g} us", value);
    case Dimension::per_second:
      return fmt::format("{:g}/s", value);
    case Dimension::hertz:
      return fmt::format("{:g} Hz", value);
    case Dimension::one:
      break;
  }
  return fmt::format("{:g}", value);
}

std::string format_seconds(double seconds) {
  if (seconds == 0) return "0 s";
  const double size = std::abs(seconds);
  if (size >= 1) return fmt::format("{:.4g} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} us", seconds * 1e6);
}

}  // namespace rehearse
