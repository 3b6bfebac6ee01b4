// May this request be answered? Pages of other sites can reach a server on this machine too. They use its
// address, or one of their names that resolves to it (DNS rebinding). They cannot choose the headers below.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::studio {

// The Host header is this machine's own name or address with the server's port.
bool is_own_host(std::string_view host, int port);

// There is no Origin header (""), or it is the server's own.
bool is_own_origin(std::string_view origin, int port);

// "application/json", which another site's page cannot send without a preflight request.
bool is_json(std::string_view content_type);

struct Refusal {
  int status = 0;  // 0: may be answered
  const char* why = "";
};

// A request by its method, path, and encoding of the body. Allowed are GET or HEAD of "/", and POST of JSON
// with its length in bytes to "/run" and "/refine".
struct Asked {
  std::string_view method, path, content_type;
  bool has_length = false, is_encoded = false;  // Content-Length; a Transfer-Encoding or Content-Encoding
};
Refusal refusal(const Asked& asked);

}  // namespace rehearse::studio
