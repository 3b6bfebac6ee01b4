// How are quantities written? "400Gbps" and "50GB/s" as input, SI doubles inside, readable text as output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

enum class Dimension {
  bytes,             // B, kB, MB, GB, TB, PB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)
  bytes_per_second,  // B/s family as above, and bps, kbps, Mbps, Gbps, Tbps (bits)
  seconds,           // s, ms, us, ns
  flops,             // FLOPS, MFLOPS, GFLOPS, TFLOPS, PFLOPS, EFLOPS
  microseconds,      // written as numbers only, like those below
  per_second,
  hertz,
  one,  // no unit: a share, a ratio, a count
};

// The whole text as a finite decimal number; nothing for "0x1p3", "inf", "1e400" or "3 us".
std::optional<double> parse_decimal(std::string_view text);

// The value in SI, or nothing when the text is not such a quantity. A unit is required; "0" alone is
// accepted.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

// Examples of a quantity of this dimension, for error messages.
std::string_view examples(Dimension dimension);

std::string format_bytes(double bytes);            // "12.3 GB" (powers of 1000)
std::string format_seconds(double seconds);        // "1.234 s", "12.3 ms", "4.56 us"
std::string format_rate(double bytes_per_second);  // "450 GB/s"

// As above by dimension; parse_quantity() reads it back where the dimension has text.
std::string format_quantity(double value, Dimension dimension);

}  // namespace rehearse
