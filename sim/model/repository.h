// How does one get the configuration of a model that Hugging Face publishes?
#pragma once

#include <string>

namespace rehearse {

// InputError where the name is that of a repository ("meta-llama/Llama-3.1-8B", or its address) and leads to
// no file: with the command that fetches its config.json, and the model of the same configuration that ships
// with the program, if one does.
void refuse_repository(const std::string& name_or_path);

}  // namespace rehearse
