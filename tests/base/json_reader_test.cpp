#include "base/json_reader.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "base/json_text.h"
#include "scratch.h"

namespace rehearse {
namespace {

using testing::HasSubstr;

JsonReader reader(const std::string& text) {
  return JsonReader(Json::parse(text), "test.json", "/plan");
}

std::string message(const std::function<void()>& read) {
  try {
    read();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string write_file(const std::string& text) {
  return scratch().write("file.json", text);
}

TEST(JsonReader, ReadsWhatIsThereAndFallsBackWhereAllowed) {
  const JsonReader plan = reader(R"({"tp": 8, "share": 0.5, "sp": true, "name": "a", "none": null})");
  EXPECT_EQ(plan.integer("tp", 1, 8), 8);
  EXPECT_EQ(plan.number("share", 0, 1), 0.5);
  EXPECT_TRUE(plan.boolean_or("sp", false));
  EXPECT_EQ(plan.text("name"), "a");
  EXPECT_EQ(plan.integer_or("none", 3, 1, 8), 3);
  EXPECT_EQ(plan.integer_or("absent", 4, 1, 8), 4);
  EXPECT_NO_THROW(plan.reject_unknown());
}

TEST(JsonReader, UnknownKeyIsRefusedWithTheNearestKnown) {
  const JsonReader plan = reader(R"({"micro_bach": 1})");
  EXPECT_EQ(plan.integer_or("micro_batch", 1, 1, 8), 1);
  const std::string said = message([&] { plan.reject_unknown(); });
  EXPECT_THAT(said, HasSubstr("test.json: /plan/micro_bach"));
  EXPECT_THAT(said, HasSubstr("nearest legal: micro_batch"));
}

TEST(JsonReader, KeysWithUnderscoreAreComments) {
  EXPECT_NO_THROW(reader(R"({"_why": "a comment"})").reject_unknown());
}

TEST(JsonReader, CopiesShareWhatWasRead) {
  const JsonReader plan = reader(R"({"tp": 8})");
  const JsonReader copy = plan;
  EXPECT_EQ(copy.integer("tp", 1, 8), 8);
  EXPECT_NO_THROW(plan.reject_unknown());
}

TEST(JsonReader, MissingKeyNamesTheOneThatWasMeant) {
  const std::string said = message([] { reader(R"({"layer": 8})").integer("layers", 1, 8); });
  EXPECT_THAT(said, HasSubstr("/plan/layers: is required"));
  EXPECT_THAT(said, HasSubstr("found \"layer\" instead"));
}

TEST(JsonReader, IntegerKeepsToItsRange) {
  for (const char* value :
       {"0", "9", "-1", "1e300", "4.5", "18446744073709551615", "1e3", "\"4\"", "true", "[4]", "{}"}) {
    const JsonReader plan = reader(std::string(R"({"tp": )") + value + "}");
    EXPECT_THAT(message([&] { plan.integer("tp", 1, 8); }), HasSubstr("must be an integer from 1 to 8"))
        << value;
  }
}

TEST(JsonReader, NumberKeepsToItsRange) {
  for (const char* value : {"-0.1", "1.1", "1e300", "\"0.5\"", "false", "[]"}) {
    const JsonReader plan = reader(std::string(R"({"share": )") + value + "}");
    EXPECT_THAT(message([&] { plan.number("share", 0, 1); }), HasSubstr("must be a number from 0 to 1"))
        << value;
  }
}

TEST(JsonReader, SaysInfAndNanWhereTheyAreNoNumber) {
  for (const auto& [value, said] :
       {std::pair{std::numeric_limits<double>::infinity(), "found inf"}, {std::nan(""), "found nan"}}) {
    const Json json = {{"share", value}};
    const JsonReader plan(json, "command line");
    EXPECT_THAT(message([&] { plan.number("share", 0, 1); }), HasSubstr(said));
    EXPECT_THAT(message([&] { plan.integer("share", 0, 1); }), HasSubstr(said));
  }
}

TEST(JsonReader, QuantityIsTextWithItsUnit) {
  EXPECT_EQ(reader(R"({"rate": "400Gbps"})").quantity("rate", physical::kBandwidth), 50e9);
  for (const char* value :
       {"400", "\"400\"", "\"-1GB/s\"", "\"nan\"", "\"1e400GB/s\"", "\"400Gb/s\"", "null"}) {
    const JsonReader plan = reader(std::string(R"({"rate": )") + value + "}");
    EXPECT_THROW(plan.quantity("rate", physical::kBandwidth), InputError) << value;
  }
}

TEST(JsonReader, ABoundIsNamedWithItsUnitAndTheValueFound) {
  EXPECT_EQ(
      message([] { reader(R"({"rate": "5e-324B/s"})").quantity("rate", physical::kBandwidth); }),
      "test.json: /plan/rate: must be from 1 kB/s to 1 PB/s (found \"5e-324B/s\"); nearest legal: 1 kB/s");
  EXPECT_EQ(
      message([] { reader(R"({"peak": 1e300})").number("peak", physical::kFlops); }),
      "test.json: /plan/peak: must be a number from 1 MFLOPS to 1 EFLOPS (found 1e+300); nearest legal: 1 "
      "EFLOPS");
  EXPECT_EQ(reader(R"({"rate": 0})").number("rate", physical::kMessageRate), 0);
  EXPECT_THAT(message([] { reader(R"({"rate": 0.5})").number("rate", physical::kMessageRate); }),
              HasSubstr("must be a number 0, or from 1/s to 1e+18/s"));
}

TEST(JsonReader, EachNumberOfAnArrayKeepsToTheBounds) {
  EXPECT_EQ(reader(R"({"rings": [1, 2.5]})").numbers("rings", {Dimension::one, 1, 3}),
            (std::vector<double>{1, 2.5}));
  EXPECT_THAT(message([] {
                reader(R"({"rings": [1, 9]})").numbers("rings", {Dimension::one, 1, 3});
              }),
              HasSubstr("/plan/rings/1: must be a number from 1 to 3 (found 9)"));
  EXPECT_THAT(message([] {
                reader(R"({"rings": [1, "2"]})").numbers("rings", {Dimension::one, 1, 3});
              }),
              HasSubstr("/plan/rings/1"));
  EXPECT_THAT(message([] {
                reader(R"({"rings": 1})").numbers("rings", {Dimension::one, 1, 3});
              }),
              HasSubstr("must be an array of numbers"));
}

TEST(JsonReader, NullIsSaidToBeNull) {
  EXPECT_EQ(message([] { reader(R"({"hidden_size": null})").integer("hidden_size", 1, 8); }),
            "test.json: /plan/hidden_size: is null; a value is required");
}

TEST(JsonReader, WrongTypesAreRefused) {
  const JsonReader plan = reader(R"({"flag": 1, "text": 2, "object": [], "array": {}, "items": [1]})");
  EXPECT_THROW(plan.boolean_or("flag", true), InputError);
  EXPECT_THROW(plan.text("text"), InputError);
  EXPECT_THROW(plan.object("object"), InputError);
  EXPECT_THROW(plan.objects("array"), InputError);
  EXPECT_THROW(plan.objects("items"), InputError);
  EXPECT_THROW(JsonReader(Json::array(), "test.json"), InputError);
}

TEST(JsonReader, PointerLeadsThroughObjectsAndArrays) {
  const JsonReader plan = reader(R"({"links": [{"rate": 1}, {"rate": -1}]})");
  const std::string said = message([&] { plan.objects("links")[1].integer("rate", 0, 5); });
  EXPECT_THAT(said, HasSubstr("test.json: /plan/links/1/rate"));
}

TEST(JsonReader, ChoiceListsTheNamesAndTheNearest) {
  const std::map<std::string, int> names = {{"none", 0}, {"selective", 1}, {"full", 2}};
  EXPECT_EQ(reader(R"({"recompute": "full"})").choice("recompute", names), 2);
  const std::string said =
      message([&] { reader(R"({"recompute": "selectiv"})").choice("recompute", names); });
  EXPECT_THAT(said, HasSubstr("must be one of full, none, selective"));
  EXPECT_THAT(said, HasSubstr("nearest legal: selective"));
}

TEST(JsonReader, AnIntegerBeyondItsRangeIsRefusedWithOrWithoutSign) {
  const JsonReader plan(Json{{"signed", std::int64_t{9}}, {"unsigned", std::uint64_t{9}}}, "test.json");
  EXPECT_THAT(message([&] { plan.integer("signed", 0, 8); }), HasSubstr("nearest legal: 8"));
  EXPECT_THAT(message([&] { plan.integer("unsigned", 0, 8); }), HasSubstr("nearest legal: 8"));
}

TEST(JsonReader, AValueOfAnyTypeIsRequired) {
  EXPECT_THAT(message([&] { reader(R"({"rows": [1]})").value("row"); }), HasSubstr("/plan/row: is required"));
  EXPECT_TRUE(reader(R"({"none": null})").value("none").is_null());
}

TEST(JsonFile, MoreThanItMayHoldIsRefused) {
  const std::string file = write_file("[1, 2, 3, 4]");
  EXPECT_THAT(message([&] { read_json_file(file, {8, 100}); }), HasSubstr("at most 8 bytes"));
  EXPECT_THAT(message([&] { read_json_file(file, {100, 4}); }), HasSubstr("more work than that of 4 values"));
  EXPECT_EQ(read_json_file(file, {12, 5}).size(), 4U);
}

TEST(JsonFile, AnObjectOfCountlessKeysIsRefused) {
  std::string text = "{";
  for (int key = 0; key < 20'000; ++key) text += fmt::format("\"{}\":0,", key);
  const std::string file = write_file(text + "\"a\":0}");
  EXPECT_THAT(message([&] { read_json_file(file); }), HasSubstr("too many values"));
}

TEST(JsonFile, DeepNestingIsRefused) {
  const std::string file = write_file(std::string(100000, '[') + std::string(100000, ']'));
  EXPECT_THAT(message([&] { read_json_file(file); }), HasSubstr("nests too deep"));
}

TEST(JsonFile, AKeyThatAnObjectSaysTwiceIsRefused) {
  const std::string twice = R"({"plan": {"tp": 2, "pp": 4, "tp": 8}})";
  EXPECT_THAT(message([&] { parse_json(twice, "x.json"); }), HasSubstr("\"tp\" again"));
  EXPECT_EQ(parse_json(twice, "x.json", kTraceLimits)["plan"]["tp"], 8);
  EXPECT_EQ(parse_json(R"({"a": {"b": 1}, "c": {"b": 2}, "_": 1, "_": 2})", "x.json")["c"]["b"], 2);
}

TEST(JsonFile, SyntaxErrorNamesItsLine) {
  const std::string file = write_file("{\n  \"tp\": 8,\n  oops\n}");
  EXPECT_THAT(message([&] { read_json_file(file); }), HasSubstr("line 3"));
}

TEST(JsonFile, WhatIsNoJsonIsRefused) {
  for (const char* text :
       {"", "not json", "{\"a\": NaN}", "{\"a\": 1e400}", "{\"a\": 1,}", "\xff\xfe", "{"}) {
    EXPECT_THROW(read_json_file(write_file(text)), InputError) << text;
  }
  EXPECT_THROW(read_json_file(scratch().file("none/file.json")), InputError);
  EXPECT_THROW(read_json_file(scratch().path()), InputError);
}

}  // namespace
}  // namespace rehearse
