// How does one get the configuration of a model that Hugging Face publishes?
#pragma once

#include <string>

namespace rehearse {

// InputError for a repository's name ("meta-llama/Llama-3.1-8B") or address that leads to no file. The error
// has the command that fetches the config.json, and the shipped model of the same shape if there is one.
void refuse_repository(const std::string& name_or_path);

}  // namespace rehearse
