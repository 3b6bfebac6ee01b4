#include "frameworks/log_words.h"

namespace rehearse {

// Sources: Megatron-LM megatron/training/training.py (training_log) and Megatron-DeepSpeed's of 2022;
// Megatron-Bridge training/utils/flop_utils.py; DeepSpeed utils/timer.py and runtime/pipe/engine.py;
// torchtitan components/metrics.py; NeMo lightning/pytorch/callbacks (progress_printer.py) and NeMo 1's
// progress bar; nanotron trainer.py and logging (K, M, ... of human_format); transformers trainer_utils.py
// (speed_metrics); Composer loggers/console_logger.py and callbacks/speed_monitor.py, as llm-foundry prints
// them; OLMo-core train/callbacks/speed_monitor.py; MaxText metric_logger.py; nanoGPT train.py; fms-fsdp
// utils/train_utils.py; InternEvo train/utils.py; torchtune and axolotl (tokens_per_second_per_gpu);
// NeMo-Automodel recipes/llm/train_ft.py. The number of a step stands before its rates.
const std::vector<LogWords>& log_words() {
  using enum LoggedField;
  constexpr double kGib = 1024.0 * 1024 * 1024, kMib = 1024.0 * 1024, kMilli = 1e-3;
  static const std::vector<LogWords> words = {
      {"Megatron-LM", "iteration", step, 1, "elapsed time per iteration"},
      {"Megatron-LM", "elapsed time per iteration (ms):", step_time_s, kMilli},
      {"Megatron-LM", "elapsed time per iteration (s):", step_time_s},
      {"Megatron-LM", "throughput per GPU (TFLOP/s/GPU):", tflops_per_gpu},
      {"Megatron-LM", "GPU utilization:", tflops_per_gpu, 1, "TFLOP/s/GPU"},
      {"Megatron-LM", "| TFLOPs:", tflops_per_gpu, 1, "elapsed time per iteration"},
      {"Megatron-LM", "tokens per GPU (tokens/s/GPU):", tokens_per_s_per_gpu},
      {"Megatron-LM", "tokens-per-second-per-gpu:", tokens_per_s_per_gpu},
      {"Megatron-LM", "global batch size:", global_batch, 1, "elapsed time per iteration"},
      {"Megatron-LM", "using world size:", gpus},
      {"Megatron-LM", "| max allocated:", memory_bytes, kMib},
      {"DeepSpeed", "global_step=", step, 1, "CurrSamplesPerSec="},
      {"DeepSpeed", "steps:", step, 1, "iter time (s):"},
      {"DeepSpeed", "CurrSamplesPerSec=", samples_per_s},
      {"DeepSpeed", "iter time (s):", step_time_s},
      {"DeepSpeed", "samples/sec:", samples_per_s, 1, "iter time (s):"},
      {"DeepSpeed", "MaxMemAllocated=", memory_bytes, kGib},
      {"torchtitan", "step:", step, 1, "tps:"},
      {"torchtitan", "tps:", tokens_per_s_per_gpu},
      {"torchtitan", "tflops:", tflops_per_gpu, 1, "tps:"},
      {"torchtitan", "memory:", reserved_bytes, kGib, "tps:"},
      {"NeMo", "global_step:", step, 1, "train_step_timing in s"},
      {"NeMo", "global_step=", step, 1, "train_step_timing in s"},
      {"NeMo", "train_step_timing in s:", step_time_s},
      {"NeMo", "train_step_timing in s=", step_time_s},
      {"NeMo", "global_batch_size:", global_batch, 1, "train_step_timing in s"},
      {"NeMo", "tflops_per_sec_per_gpu:", tflops_per_gpu, 1, "train_step_timing in s"},
      {"NeMo-Automodel", "step ", step, 1, "/gpu)"},
      {"NeMo-Automodel", "tps ", tokens_per_s, 1, "/gpu)"},
      {"NeMo-Automodel", "/gpu)", tokens_per_s_per_gpu, 1, "tps ", true},
      {"nanotron", "iteration:", step, 1, "elapsed_time_per_iteration_ms:"},
      {"nanotron", "elapsed_time_per_iteration_ms:", step_time_s, kMilli},
      {"nanotron", "tokens_per_sec:", tokens_per_s},
      {"nanotron", "tokens_per_sec_per_gpu:", tokens_per_s_per_gpu},
      {"nanotron", "tokens/sec/gpu:", tokens_per_s_per_gpu, 1, "elapsed_time_per_iteration_ms:"},
      {"nanotron", "global_batch_size:", global_batch, 1, "elapsed_time_per_iteration_ms:"},
      {"nanotron", "model_tflops_per_gpu:", tflops_per_gpu},
      {"transformers", "train_samples_per_second", samples_per_s},
      {"transformers", "train_steps_per_second", steps_per_s},
      {"llm-foundry", "[batch=", step},
      {"llm-foundry", "throughput/samples_per_sec", samples_per_s},
      {"llm-foundry", "throughput/batches_per_sec", steps_per_s},
      {"llm-foundry", "throughput/device/tokens_per_sec:", tokens_per_s_per_gpu},
      {"OLMo", "[step=", step},
      {"OLMo", "throughput/device/TPS=", tokens_per_s_per_gpu},
      {"OLMo", "throughput/device/tokens_per_second=", tokens_per_s_per_gpu},
      {"OLMo", "throughput/device/BPS=", steps_per_s},
      {"OLMo", "throughput/device/batches_per_second=", steps_per_s},
      {"MaxText", "completed step:", step},
      {"MaxText", "seconds:", step_time_s, 1, "completed step:"},
      {"MaxText", "TFLOP/s/device:", tflops_per_gpu, 1, "completed step:"},
      {"MaxText", "Tokens/s/device:", tokens_per_s_per_gpu, 1, "completed step:"},
      {"nanoGPT", "iter ", step, 1, ": loss "},
      {"nanoGPT", ", time ", step_time_s, kMilli, ": loss "},
      {"fms-fsdp", "current token per gpu per sec:", tokens_per_s_per_gpu},
      {"fms-fsdp", "current step time:", step_time_s},
      {"InternEvo", "step=", step, 1, "tgs (tokens/gpu/second)="},
      {"InternEvo", "tgs (tokens/gpu/second)=", tokens_per_s_per_gpu},
      {"InternEvo", "tflops=", tflops_per_gpu, 1, "tgs (tokens/gpu/second)="},
      {"torchtune", "tokens_per_second_per_gpu", tokens_per_s_per_gpu},
  };
  return words;
}

std::string logging_frameworks() {
  std::string names;
  std::string_view last;
  for (const LogWords& words : log_words()) {
    if (words.framework != last) names += (names.empty() ? "" : ", ") + std::string(words.framework);
    last = words.framework;
  }
  return names;
}

}  // namespace rehearse
