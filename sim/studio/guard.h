// May this request be answered? Pages of other sites can reach a server on this machine too, by its address
// or by a name of theirs that they let point here (DNS rebinding); what they cannot do is choose the headers
// below.
#pragma once

#include <string>
#include <string_view>

namespace rehearse::studio {

// The Host header is this machine's own name or address with the server's port.
bool is_own_host(std::string_view host, int port);

// There is no Origin header (""), or it is the server's own.
bool is_own_origin(std::string_view origin, int port);

// "application/json", which a foreign page cannot send without asking first.
bool is_json(std::string_view content_type);

}  // namespace rehearse::studio
