#include "fuzz/mutate.h"

#include <array>
#include <string_view>
#include <vector>

namespace rehearse::fuzz {

namespace {

constexpr std::array<std::string_view, 24> kNumbers = {"0",
                                                       "-1",
                                                       "-0.0",
                                                       "1",
                                                       "2",
                                                       "65536",
                                                       "2147483647",
                                                       "2147483648",
                                                       "4294967296",
                                                       "-2147483649",
                                                       "999999999",
                                                       "1000000000000",
                                                       "9007199254740993",
                                                       "9223372036854775807",
                                                       "-9223372036854775808",
                                                       "18446744073709551616",
                                                       "1e308",
                                                       "-1e308",
                                                       "1e-308",
                                                       "1e999",
                                                       "nan",
                                                       "-inf",
                                                       "0x10",
                                                       "1.5"};
constexpr std::string_view kOfNumbers = "+-.0123456789eE";

// Places are drawn by remainder: distributions differ between standard libraries.
std::size_t below(std::size_t count, Random& random) {
  return count == 0 ? 0 : static_cast<std::size_t>(random() % count);
}

struct Piece {
  std::size_t begin = 0, size = 0;
};

Piece any_piece(const std::string& text, Random& random) {
  const std::size_t begin = below(text.size(), random);
  return {begin, below(text.size() - begin, random) % 64 + (begin < text.size() ? 1U : 0U)};
}

bool of_words(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}

bool of_numbers(char letter) {
  return kOfNumbers.find(letter) != std::string_view::npos;
}

// The run of such letters at or after a random place, else before it; of size 0 where there is none.
template <typename Is>
Piece any_run(const std::string& text, Is is, Random& random) {
  const std::size_t from = below(text.size(), random);
  for (std::size_t step = 0; step < text.size(); ++step) {
    std::size_t begin = (from + step) % text.size();
    if (!is(text[begin])) continue;
    while (begin > 0 && is(text[begin - 1])) --begin;
    std::size_t end = begin;
    while (end < text.size() && is(text[end])) ++end;
    return {begin, end - begin};
  }
  return {};
}

void flip(std::string& text, Random& random) {
  if (text.empty()) return;
  char& letter = text[below(text.size(), random)];
  letter = static_cast<char>(static_cast<unsigned char>(letter) ^ (1U << below(8, random)));
}

void cut_out(std::string& text, Random& random) {
  const Piece piece = any_piece(text, random);
  text.erase(piece.begin, piece.size);
}

void copy_piece(std::string& text, Random& random) {
  const Piece piece = any_piece(text, random);
  text.insert(below(text.size() + 1, random), text.substr(piece.begin, piece.size));
}

void splice(std::string& text, const std::string& other, Random& random) {
  text.resize(below(text.size() + 1, random));
  text += other.substr(below(other.size() + 1, random));
}

void swap_number(std::string& text, Random& random) {
  const Piece piece = any_run(text, of_numbers, random);
  text.replace(piece.begin, piece.size, kNumbers[below(kNumbers.size(), random)]);
}

void swap_word(std::string& text, const std::string& other, Random& random) {
  const std::string& source = below(2, random) == 0 ? text : other;
  const Piece to = any_run(text, of_words, random), from = any_run(source, of_words, random);
  text.replace(to.begin, to.size, source.substr(from.begin, from.size));
}

void change(std::string& text, const std::string& other, Random& random) {
  switch (below(8, random)) {
    case 0:
      return flip(text, random);
    case 1:
      return cut_out(text, random);
    case 2:
      return copy_piece(text, random);
    case 3:
      return text.resize(below(text.size() + 1, random));
    case 4:
      return splice(text, other, random);
    case 5:
      return swap_word(text, other, random);
    default:
      return swap_number(text, random);
  }
}

}  // namespace

std::string mutate(std::string unit, const std::string& other, std::size_t most, Random& random) {
  for (std::size_t changes = 1 + below(4, random); changes > 0; --changes) change(unit, other, random);
  if (unit.size() > most) unit.resize(most);
  return unit;
}

}  // namespace rehearse::fuzz
