// Which sanitizer is this built with? Some need more addresses than a limit on memory leaves, all take more
// time.
#pragma once

#if defined(__has_feature)
#define REHEARSE_HAS_FEATURE(name) __has_feature(name)
#else
#define REHEARSE_HAS_FEATURE(name) 0
#endif

namespace rehearse {

#if defined(__SANITIZE_ADDRESS__) || REHEARSE_HAS_FEATURE(address_sanitizer)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

#if defined(__SANITIZE_THREAD__) || REHEARSE_HAS_FEATURE(thread_sanitizer)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

inline constexpr bool kSanitized = kAddressSanitizer || kThreadSanitizer;

// Approximate slowdown, for the time that a test allows a program to begin or to end.
inline constexpr int kSlower = kThreadSanitizer ? 10 : kAddressSanitizer ? 4 : 1;

}  // namespace rehearse
