// How quantities are written: "400Gbps" and "50GB/s" in, SI doubles inside, readable text out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace rehearse {

enum class Dimension {
  bytes,             // B, kB, MB, GB, TB (powers of 1000), KiB, MiB, GiB, TiB (powers of 1024)
  bytes_per_second,  // B/s family as above, and bps, kbps, Mbps, Gbps, Tbps (bits)
  seconds,           // s, ms, us, ns
  flops,             // FLOPS, GFLOPS, TFLOPS, PFLOPS
};

// The value in SI, or nothing when the text is no such quantity. A unit is required; "0" alone is accepted.
std::optional<double> parse_quantity(std::string_view text, Dimension dimension);

// What a quantity of this dimension may look like, for error messages.
std::string_view examples(Dimension dimension);

std::string format_bytes(double bytes);            // "12.3 GB" (powers of 1000)
std::string format_seconds(double seconds);        // "1.234 s", "12.3 ms", "4.56 us"
std::string format_rate(double bytes_per_second);  // "450 GB/s"

}  // namespace rehearse
