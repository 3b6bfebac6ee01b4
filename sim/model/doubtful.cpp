// Which values of a configuration does no family read and no known model have?
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "model/families.h"

namespace rehearse {

namespace {

// transformers, src/transformers/activations.py: ACT2CLS; and the activations of Kimi K3 and MiniMax-M3.
constexpr std::array<std::string_view, 24> kActivations = {"gelu",
                                                           "gelu_10",
                                                           "gelu_accurate",
                                                           "gelu_fast",
                                                           "gelu_new",
                                                           "gelu_python",
                                                           "quick_gelu",
                                                           "leaky_relu",
                                                           "gelu_pytorch_tanh",
                                                           "gelu_python_tanh",
                                                           "laplace",
                                                           "linear",
                                                           "mish",
                                                           "prelu",
                                                           "relu",
                                                           "relu2",
                                                           "relu6",
                                                           "sigmoid",
                                                           "silu",
                                                           "situ",
                                                           "swigluoai",
                                                           "swish",
                                                           "tanh",
                                                           "xielu"};
constexpr std::array kActivationKeys = {"hidden_act", "hidden_activation", "activation_function",
                                        "mlp_hidden_act"};

// Types of torch for stored weights.
constexpr std::array<std::string_view, 9> kTypes = {
    "float32", "float", "float16", "half", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2", "auto"};
constexpr std::array kTypeKeys = {"torch_dtype", "dtype"};

template <std::size_t N>
bool is_one_of(const Json& value, const std::array<std::string_view, N>& known) {
  if (!value.is_string()) return false;
  std::string_view name = value.get_ref<const std::string&>();
  constexpr std::string_view kModule = "torch.";
  if (name.starts_with(kModule)) name.remove_prefix(kModule.size());
  return std::ranges::find(known, name) != known.end();
}

}  // namespace

std::vector<std::string> doubtful_values(const JsonReader& config, const Model& model) {
  std::vector<std::string> warnings;
  for (const char* key : kActivationKeys)
    if (config.has(key) && !is_one_of(config.value(key), kActivations))
      warnings.push_back(fmt::format(
          "{} {} is not an activation of transformers: ignored, the MLP is costed as {}", key,
          config.value(key).dump(), model.gated_mlp ? "a gated one (three matrices)" : "two matrices"));
  for (const char* key : kTypeKeys)
    if (config.has(key) && !is_one_of(config.value(key), kTypes))
      warnings.push_back(fmt::format(
          "{} {} is not a training type of PyTorch: ignored; --precision sets the precision of GEMMs", key,
          config.value(key).dump()));
  return warnings;
}

}  // namespace rehearse
