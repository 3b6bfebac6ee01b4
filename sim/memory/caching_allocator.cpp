#include "memory/caching_allocator.h"

#include <algorithm>
#include <tuple>

namespace rehearse {

namespace {

constexpr std::int64_t kMib = 1 << 20;
constexpr std::int64_t kSmallestBlock = 512, kSmall = kMib, kSmallSegment = 2 * kMib;
constexpr std::int64_t kOfItsOwn = 10 * kMib, kSharedSegment = 20 * kMib, kSegmentStep = 2 * kMib;

std::int64_t rounded_up(std::int64_t bytes, std::int64_t step) {
  return (bytes + step - 1) / step * step;
}

std::int64_t segment_bytes(std::int64_t bytes) {
  if (bytes <= kSmall) return kSmallSegment;
  return bytes < kOfItsOwn ? kSharedSegment : rounded_up(bytes, kSegmentStep);
}

}  // namespace

bool CachingAllocator::Order::operator()(Handle a, Handle b) const {
  const Block &left = (*blocks)[static_cast<std::size_t>(a)], &right = (*blocks)[static_cast<std::size_t>(b)];
  return std::tie(left.bytes, left.address) < std::tie(right.bytes, right.address);
}

bool CachingAllocator::Order::operator()(Handle a, std::int64_t bytes) const {
  return (*blocks)[static_cast<std::size_t>(a)].bytes < bytes;
}

CachingAllocator::Handle CachingAllocator::new_block(Block block) {
  if (unused_.empty()) {
    blocks_.push_back(block);
    return static_cast<Handle>(blocks_.size() - 1);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  at(handle) = block;
  return handle;
}

CachingAllocator::Handle CachingAllocator::new_segment(std::int64_t bytes, bool small) {
  const Block segment{.address = next_address_, .bytes = bytes, .is_small = small};
  next_address_ += bytes;
  reserved_ += bytes;
  most_reserved_ = std::max(most_reserved_, reserved_);
  return new_block(segment);
}

CachingAllocator::Handle CachingAllocator::take_free(std::int64_t bytes, bool small) {
  FreeBlocks& free_blocks = pool(small);
  const auto found = free_blocks.lower_bound(bytes);
  if (found == free_blocks.end()) return -1;
  const Handle handle = *found;
  free_blocks.erase(found);
  at(handle).is_free = false;
  return handle;
}

// The rest of a block behind its first `bytes` becomes free.
void CachingAllocator::split(Handle handle, std::int64_t bytes) {
  const Block whole = at(handle);
  const Handle rest =
      new_block({whole.address + bytes, whole.bytes - bytes, 0, handle, whole.after, true, whole.is_small});
  if (whole.after >= 0) at(whole.after).before = rest;
  at(handle).bytes = bytes;
  at(handle).after = rest;
  pool(whole.is_small).insert(rest);
}

CachingAllocator::Handle CachingAllocator::allocate(std::int64_t requested) {
  const std::int64_t bytes = std::max(rounded_up(requested, kSmallestBlock), kSmallestBlock);
  const bool small = bytes <= kSmall;
  Handle handle = take_free(bytes, small);
  if (handle < 0 && segment_bytes(bytes) > capacity_ - reserved_) {
    reach(kUnlimited);
    give_back_segments();
    handle = take_free(bytes, small);
  }
  if (handle < 0) handle = new_segment(segment_bytes(bytes), small);
  const std::int64_t left = at(handle).bytes - bytes;
  if (small ? left >= kSmallestBlock : left > kSmall) split(handle, bytes);
  at(handle).requested = requested;
  requested_ += requested;
  most_requested_ = std::max(most_requested_, requested_);
  return handle;
}

// A free neighbour becomes part of a block that is in no pool.
void CachingAllocator::absorb(Handle handle, Handle neighbour) {
  if (neighbour < 0 || !at(neighbour).is_free) return;
  const Block other = at(neighbour);
  pool(other.is_small).erase(neighbour);
  Block& block = at(handle);
  block.bytes += other.bytes;
  if (other.address < block.address) {
    block.address = other.address;
    block.before = other.before;
    if (other.before >= 0) at(other.before).after = handle;
  } else {
    block.after = other.after;
    if (other.after >= 0) at(other.after).before = handle;
  }
  unused_.push_back(neighbour);
}

void CachingAllocator::free(Handle handle) {
  requested_ -= at(handle).requested;
  absorb(handle, at(handle).before);
  absorb(handle, at(handle).after);
  at(handle).is_free = true;
  pool(at(handle).is_small).insert(handle);
}

// Blocks of a stream are checked in the order in which they were freed, as process_events() does.
void CachingAllocator::reach(std::int64_t moment) {
  while (!used_elsewhere_.empty() && used_elsewhere_.front().until <= moment) {
    const Handle handle = used_elsewhere_.front().handle;
    used_elsewhere_.pop_front();
    free(handle);
  }
}

void CachingAllocator::give_back_segments() {
  for (FreeBlocks* free_blocks : {&small_, &large_}) {
    std::erase_if(*free_blocks, [this](Handle handle) {
      const Block& block = at(handle);
      if (block.before >= 0 || block.after >= 0) return false;
      reserved_ -= block.bytes;
      unused_.push_back(handle);
      return true;
    });
  }
}

}  // namespace rehearse
