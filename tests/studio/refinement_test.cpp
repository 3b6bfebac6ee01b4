// Questions are answered by children of a process of their own, whatever becomes of them.
#include "studio/refinement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <stdexcept>
#include <thread>
#include <vector>

namespace rehearse::studio {
namespace {

using testing::HasSubstr;

std::string failure_of(Refinement& refinement, const std::string& question) {
  try {
    return "answered: " + refinement.answer(question);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(Refinement, AnswersEachQuestionInAProcessOfItsOwn) {
  int questions = 0;
  Refinement refinement(
      [&](const std::string& question) {
        return question + " " + std::to_string(++questions) + " " + std::to_string(getpid());
      },
      10);
  const std::string first = refinement.answer("a"), second = refinement.answer("b");
  EXPECT_TRUE(first.starts_with("a 1 ")) << first;
  EXPECT_TRUE(second.starts_with("b 1 ")) << "an engine is begun once a process: " << second;
  EXPECT_NE(first.substr(4), second.substr(4));
}

TEST(Refinement, CarriesLargeTexts) {
  Refinement refinement([](const std::string& question) { return question + question; }, 10);
  const std::string question(3'000'000, 'x');
  EXPECT_EQ(refinement.answer(question), question + question);
}

TEST(Refinement, OutlivesAChildThatThrowsDiesOrTakesTooLong) {
  Refinement refinement(
      [](const std::string& question) -> std::string {
        if (question == "throw") throw std::runtime_error("no such plan");
        if (question == "die") std::raise(SIGKILL);
        if (question == "leave") _exit(7);
        if (question == "sleep") std::this_thread::sleep_for(std::chrono::seconds(30));
        return "fine";
      },
      1);
  EXPECT_EQ(failure_of(refinement, "throw"), "no such plan");
  EXPECT_THAT(failure_of(refinement, "die"), HasSubstr("signal 9"));
  EXPECT_THAT(failure_of(refinement, "leave"), HasSubstr("without an answer"));
  EXPECT_THAT(failure_of(refinement, "sleep"), HasSubstr("more than 1 seconds"));
  EXPECT_EQ(refinement.answer("well"), "fine");
}

TEST(Refinement, LeavesOutQuestionsThatANewerOneOvertook) {
  Refinement refinement(
      [](const std::string& question) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        return question;
      },
      10);
  std::vector<std::string> answers(4);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    threads.emplace_back([&, i] { answers[i] = refinement.answer(std::to_string(i)); });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(answers, (std::vector<std::string>{"0", "", "", "3"}));
}

// The process that answers is the parent of the child that says who it is.
TEST(Refinement, OutlivesTheDeathOfItsProcess) {
  Refinement refinement([](const std::string&) { return std::to_string(getppid()); }, 10);
  std::vector<std::string> processes;
  for (int kills = 0; kills < 3; ++kills) {
    processes.push_back(refinement.answer("who?"));
    ASSERT_EQ(kill(std::stoi(processes.back()), SIGKILL), 0);
  }
  processes.push_back(refinement.answer("who?"));
  for (std::size_t i = 1; i < processes.size(); ++i) EXPECT_NE(processes[i], processes[i - 1]);
}

TEST(Refinement, StartsAgainWhileOthersCompute) {
  Refinement refinement([](const std::string&) { return std::to_string(getppid()); }, 10);
  std::atomic<bool> over = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i)
    others.emplace_back([&] {
      while (!over)
        refinement.beside([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          return std::string();
        });
    });
  const std::string before = refinement.answer("who?");
  kill(std::stoi(before), SIGKILL);
  EXPECT_NE(refinement.answer("who?"), before);
  over = true;
  for (std::thread& other : others) other.join();
}

TEST(Refinement, EndsTheQuestionThatIsAskedAndAllLaterOnes) {
  Refinement refinement(
      [](const std::string&) -> std::string {
        sleep(60);
        return "late";
      },
      60);
  std::thread asking([&] { EXPECT_THROW(refinement.answer("slow"), std::runtime_error); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  refinement.end();
  asking.join();
  EXPECT_THROW(refinement.answer("another"), std::runtime_error);
}

}  // namespace
}  // namespace rehearse::studio
