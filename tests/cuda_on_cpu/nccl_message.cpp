#include "nccl_message.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cuda_on_cpu {

namespace {

template <typename T>
bool hear_value(int socket, T& value) {
  return hear(socket, &value, sizeof value);
}

template <typename T>
double number(T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<double>(value);
  return double{static_cast<float>(value)};
}

template <typename T>
Bytes reduced_as(const std::vector<const Bytes*>& operands, const Part& part) {
  Bytes all(operands.front()->size());
  for (std::size_t at = 0; at < all.size(); at += sizeof(T)) {
    double value = part.operation == ncclMax ? -INFINITY : 0;
    for (const Bytes* operand : operands) {
      T element;
      std::memcpy(&element, operand->data() + at, sizeof(T));
      value = part.operation == ncclMax ? std::max(value, number(element)) : value + number(element);
    }
    T result;
    if constexpr (std::is_integral_v<T>) {
      result = static_cast<T>(value);
    } else {
      result = T(static_cast<float>(value));
    }
    std::memcpy(all.data() + at, &result, sizeof(T));
  }
  return all;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt64:
      return 8;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 1;
  }
}

const char* name_of(Kind kind) {
  constexpr const char* kNames[] = {"all-reduce", "all-gather", "reduce-scatter",
                                    "broadcast",  "send",       "receive"};
  return kNames[static_cast<int>(kind)];
}

bool say(int socket, const void* data, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

bool hear(int socket, void* data, std::size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

bool say(int socket, const Message& message) {
  const std::uint64_t sizes[] = {static_cast<std::uint64_t>(message.state), message.reason.size(),
                                 message.parts.size(), message.data.size()};
  if (!say(socket, sizes, sizeof sizes) || !say(socket, message.reason.data(), message.reason.size()))
    return false;
  if (!say(socket, message.parts.data(), message.parts.size() * sizeof(Part))) return false;
  return std::all_of(message.data.begin(), message.data.end(), [socket](const Bytes& data) {
    const std::uint64_t bytes = data.size();
    return say(socket, &bytes, sizeof bytes) && say(socket, data.data(), data.size());
  });
}

bool hear(int socket, Message& message) {
  std::uint64_t sizes[4] = {};
  if (!hear_value(socket, sizes)) return false;
  message.state = static_cast<ncclResult_t>(sizes[0]);
  message.reason.resize(sizes[1]);
  message.parts.resize(sizes[2]);
  message.data.assign(sizes[3], {});
  if (!hear(socket, message.reason.data(), message.reason.size())) return false;
  if (!hear(socket, message.parts.data(), message.parts.size() * sizeof(Part))) return false;
  return std::all_of(message.data.begin(), message.data.end(), [socket](Bytes& data) {
    std::uint64_t bytes = 0;
    if (!hear_value(socket, bytes)) return false;
    data.resize(bytes);
    return hear(socket, data.data(), data.size());
  });
}

Bytes reduced(const std::vector<const Bytes*>& operands, const Part& part) {
  switch (part.type) {
    case ncclUint8:
      return reduced_as<std::uint8_t>(operands, part);
    case ncclInt32:
      return reduced_as<std::int32_t>(operands, part);
    case ncclInt64:
      return reduced_as<std::int64_t>(operands, part);
    case ncclFloat16:
      return reduced_as<__half>(operands, part);
    case ncclBfloat16:
      return reduced_as<__nv_bfloat16>(operands, part);
    case ncclFloat8e4m3:
      return reduced_as<__nv_fp8_e4m3>(operands, part);
    case ncclFloat8e5m2:
      return reduced_as<__nv_fp8_e5m2>(operands, part);
    case ncclFloat32:
      break;
  }
  return reduced_as<float>(operands, part);
}

}  // namespace cuda_on_cpu
