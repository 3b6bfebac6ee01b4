// Which accesses does ThreadSanitizer treat as ordered? Only those that CUDA orders. The emulation's own
// locks would hide that a stream does not wait for another.
#pragma once

#include <cstddef>

// Weak: they are there where ThreadSanitizer is.
extern "C" {
[[gnu::weak]] void __tsan_acquire(void* at);
[[gnu::weak]] void __tsan_release(void* at);
[[gnu::weak]] void __tsan_read_range(void* at, unsigned long bytes);
[[gnu::weak]] void __tsan_write_range(void* at, unsigned long bytes);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncEnd(const char* file, int line);
}

namespace cuda_on_cpu {

// All before release(at) comes before all behind a later acquire(at).
inline void release(void* at) {
  if (__tsan_release != nullptr) __tsan_release(at);
}
inline void acquire(void* at) {
  if (__tsan_acquire != nullptr) __tsan_acquire(at);
}

// The memory that memcpy() and similar functions access; such functions may be excluded from checks.
inline void reads(const void* at, std::size_t bytes) {
  if (__tsan_read_range != nullptr) __tsan_read_range(const_cast<void*>(at), bytes);
}
inline void writes(void* at, std::size_t bytes) {
  if (__tsan_write_range != nullptr) __tsan_write_range(at, bytes);
}

// While it lives this thread's work is the stand-in's own, which orders nothing.
class Unseen {
 public:
  Unseen() {
    if (AnnotateIgnoreSyncBegin == nullptr) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
  ~Unseen() {
    if (AnnotateIgnoreSyncEnd == nullptr) return;
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
};

}  // namespace cuda_on_cpu
