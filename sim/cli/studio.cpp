#include <fmt/core.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/say.h"
#include "cli/studio_answer.h"
#include "cli/verbs.h"
#include "scenario/scenario.h"
#include "studio/refinement.h"
#include "studio/server.h"

namespace rehearse {

namespace {

constexpr unsigned kMaxSeconds = 60;  // for the simulator

struct StudioOptions {
  GivenFlags given;
  int port = 8642;
};

// The scenario that a new user sees without naming one.
void add_defaults(GivenFlags& given) {
  if (!given.file.empty() || given.values.contains("--model")) return;
  const std::pair<const char*, const char*> defaults[] = {{"--model", "llama3-70b"},
                                                          {"--cluster", "dgx-h100"},
                                                          {"--gpus", "128"},
                                                          {"--tp", "8"},
                                                          {"--pp", "4"},
                                                          {"--gbs", "64"},
                                                          {"--seq", "8192"},
                                                          {"--sequence-parallel", "on"}};
  for (const auto& [flag, value] : defaults) given.values.emplace(flag, value);
}

// Ctrl-C ends the server, but not in the middle of an answer. Signals are blocked before the server's threads
// start, which inherit the mask.
sigset_t block_signals() {
  sigset_t signals{};
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Stops the server on a signal; an earlier pending signal stops it at once. The server must outlive it.
class StopOnSignal {
 public:
  StopOnSignal(const sigset_t& signals, studio::Server& server)
      : thread_([signals, &server] {
          int signal = 0;
          sigwait(&signals, &signal);
          server.stop();
        }) {}
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() {
    kill(getpid(), SIGTERM);  // wakes the thread where none has come
    thread_.join();
  }

 private:
  std::thread thread_;
};

void serve(StudioOptions& options) {
  add_defaults(options.given);
  const GivenFlags& given = options.given;
  const ScenarioSource source = collect(given);
  Replaced lenient;
  Inputs inputs;
  lenient.inputs = &inputs;
  lenient.without_rules = true;  // an illegal plan is explained on the page
  const auto knobs = studio_knobs(read_scenario(source, lenient).experiment, source);
  const auto answer = [&](Engine engine) {
    return [&, engine](const std::string& question) {
      return studio_answer(question, given, knobs, engine, inputs).dump();
    };
  };
  const Json first = studio_answer("{}", given, knobs, Engine::reference, inputs);
  studio::Refinement refinement(answer(Engine::simgrid), kMaxSeconds);
  const sigset_t signals = block_signals();
  const auto run = answer(Engine::reference);
  studio::Server server(
      {studio::write_page("Rehearse studio", knobs, given.file, given.values, first),
       [&](const std::string& question) { return refinement.beside([&] { return run(question); }); },
       [&](const std::string& question) { return refinement.answer(question); }},
      options.port);
  const StopOnSignal stop(signals, server);
  fmt::print("http://127.0.0.1:{}/\n", server.port());
  std::fflush(stdout);
  say(stderr, "open it in a browser of this machine; Ctrl-C ends the studio\n");
  server.serve();
  refinement.end();
}

}  // namespace

Verb studio_verb() {
  const auto options = std::make_shared<StudioOptions>();
  Verb verb{"studio", "change a plan on a local web page and see its prediction"};
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--port"},
            .target = &options->port,
            .help = "port of 127.0.0.1; 0 takes a free one (default: 8642)",
            .value = "N",
            .bounds = {{0, 65535}}});
  verb.footer =
      "Only this machine can reach the page, and the page needs no network. From another machine:\n"
      "  ssh -L 8642:127.0.0.1:8642 MACHINE\n"
      "Examples:\n"
      "  rehearse studio\n"
      "  rehearse studio scenarios/llama3-70b-512-h100.json --port 9000\n"
      "  rehearse studio --model llama3-8b --cluster dgx-h100 --gpus 64 --tp 4 --pp 4 --gbs 64";
  verb.run = [options] {
    serve(*options);
    return kDone;
  };
  return verb;
}

}  // namespace rehearse
