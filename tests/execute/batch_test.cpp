// The network's input, and that training learns from it.
#include "execute/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cases.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

const std::string kRhyme =
    "the cat sat on the mat and the dog sat on the log while the frog sat on the hog by the bog ";

Training reading(const std::string& text, int dp, std::int64_t micro_batch) {
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 1, dp);
  plan.micro_batch = micro_batch;
  Training training{tiny_llama(), plan, {}, {}, 3};
  training.model.vocab = 256;
  training.text = text;
  return training;
}

TEST(Batch, OfAStepIsTheSameHoweverItIsDivided) {
  for (const std::string& text : {std::string(), kRhyme}) {
    const Training whole = reading(text, 1, 1), divided = reading(text, 2, 2);
    for (int replica = 0; replica < 2; ++replica) {
      for (int m = 0; m < 2; ++m) {
        const Batch batch = make_batch(divided, 5, replica, 0, m);
        for (int s = 0; s < 2; ++s) {
          const Batch sequence = make_batch(whole, 5, 0, 0, (2 * m + replica) * 2 + s);
          for (std::size_t place = 0; place < 8; ++place) {
            EXPECT_EQ(batch.tokens[2 * place + static_cast<std::size_t>(s)], sequence.tokens[place]);
            EXPECT_EQ(batch.labels[2 * place + static_cast<std::size_t>(s)], sequence.labels[place]);
          }
        }
      }
    }
  }
}

TEST(Batch, OfATextIsAPieceOfItWithTheNextBytesAsLabels) {
  const Training training = reading(kRhyme, 1, 1);
  std::vector<std::string> pieces;
  for (int step = 0; step < 4; ++step) {
    const Batch batch = make_batch(training, step, 0, 0, 0);
    std::string piece(batch.tokens.begin(), batch.tokens.end());
    piece.push_back(static_cast<char>(batch.labels.back()));
    EXPECT_THAT(kRhyme, HasSubstr(piece));
    EXPECT_EQ(piece.substr(1), std::string(batch.labels.begin(), batch.labels.end()));
    pieces.push_back(piece);
  }
  EXPECT_NE(pieces[0], pieces[1]);
}

TEST(Batch, OfATextThatIsAsLongAsOneSequenceIsAllOfIt) {
  const Batch batch = make_batch(reading("abcdefghi", 1, 1), 0, 0, 0, 0);
  EXPECT_EQ(std::string(batch.tokens.begin(), batch.tokens.end()), "abcdefgh");
  EXPECT_EQ(batch.labels.back(), 'i');
}

TEST(Batch, OfContextParallelRanksAreChunksFromBothEnds) {
  Training training = reading("0123456789", 1, 1);
  training.text.resize(9);
  training.plan.cp = 2;
  const auto tokens = [&](int rank) {
    const Batch batch = make_batch(training, 0, 0, rank, 0);
    EXPECT_EQ(batch.tokens.size(), batch.labels.size());
    return std::string(batch.tokens.begin(), batch.tokens.end());
  };
  EXPECT_EQ(tokens(0), "0167");
  EXPECT_EQ(tokens(1), "2345");
}

TEST(Text, IsReadByteByByte) {
  const std::string file = scratch().write("text", std::string("a\0\xff\n", 4));
  EXPECT_EQ(read_text(file, 256, 4), std::string("a\0\xff\n", 4));
}

TEST(Text, ThatDoesNotSuitTheModelIsRefusedWithWhatWould) {
  const std::string file = scratch().write("text", "caf\xe9 au lait");
  const auto refused = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const InputError& error) {
      return to_string(error.violations().front());
    }
    return "";
  };
  EXPECT_THAT(refused([&] { read_text(file, 128, 5); }),
              AllOf(HasSubstr("byte 3"), HasSubstr("233"), HasSubstr("256 or more")));
  EXPECT_THAT(refused([&] { read_text(file, 256, 13); }), HasSubstr("13 bytes or more"));
  EXPECT_THAT(refused([&] { read_text(scratch().file("none/text"), 256, 5); }), HasSubstr("no such file"));
}

TEST(Training, OnATextLearnsIt) {
  Model model = tiny_llama();
  model.vocab = 256;
  Plan plan = plan_of(ScheduleName::one_f_one_b, 1, 2, 1);
  Training training = training_of(model, plan);
  training.text = kRhyme;
  training.rate = 1e-2F;
  RankPool rank_pool(training, {10, {}});
  const double untrained = std::log(256);
  EXPECT_NEAR(rank_pool.step().loss, untrained, 0.1 * untrained);
  double loss = untrained;
  for (int step = 0; step < 60; ++step) loss = rank_pool.step().loss;
  EXPECT_LT(loss, 0.4 * untrained);
}

}  // namespace
}  // namespace rehearse
