#include "server/checkpoint/safetensors_header.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"

namespace penstock::server::checkpoint {
namespace {

using ::penstock::testing::IsOkAndHolds;
using ::penstock::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SafetensorsHeaderTest, ReadsTensorsInOrderOfTheirData) {
  ASSERT_OK_AND_ASSIGN(const SafetensorsHeader header,
                       ParseSafetensorsHeader(
                           R"({"__metadata__": {"format": "pt"},
              "b": {"dtype": "BF16", "shape": [3], "data_offsets": [24, 30]},
              "a": {"data_offsets": [0, 24], "dtype": "F32",
                    "shape": [2, 3]}}   )",
                           30));

  ASSERT_EQ(header.tensors.size(), 2);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_THAT(header.tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(header.tensors[0].elements(), 6);
  EXPECT_EQ(header.tensors[1].dtype, "BF16");
  EXPECT_EQ(header.tensors[1].begin, 24);
  EXPECT_EQ(header.metadata.at("format"), "pt");
  EXPECT_EQ(header.Find("b"), &header.tensors[1]);
  EXPECT_EQ(header.Find("c"), nullptr);
}

TEST(SafetensorsHeaderTest, AcceptsScalarsAndEmptyTensors) {
  ASSERT_OK_AND_ASSIGN(
      const SafetensorsHeader header,
      ParseSafetensorsHeader(
          R"({"s": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]},
              "e": {"dtype": "F32", "shape": [9223372036854775807, 0, 7],
                    "data_offsets": [4, 4]}})",
          4));
  EXPECT_EQ(header.Find("s")->elements(), 1);
  EXPECT_EQ(header.Find("e")->elements(), 0);
}

struct BadHeader {
  const char* name;
  const char* json;
  int64_t data_bytes;
  const char* message;
};

class BadHeaderTest : public ::testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaderTest, IsRefusedNamingTensorAndRule) {
  EXPECT_THAT(
      ParseSafetensorsHeader(GetParam().json, GetParam().data_bytes).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(
    AllFaults, BadHeaderTest,
    ::testing::Values(
        BadHeader{"NotJson", "garbage", 0, "not JSON at byte"},
        BadHeader{"Empty", "", 0, "not JSON"},
        BadHeader{"CutOff", R"({"a": {"dtype": "F32")", 0, "not JSON"},
        BadHeader{"TrailingText", R"({} x)", 0, "not JSON"},
        BadHeader{"Array", "[]", 0, "unexpected an array"},
        BadHeader{"DeepNesting", "[[[[[[[[", 0, "unexpected an array"},
        BadHeader{"TensorIsNumber", R"({"a": 1})", 0, "unexpected a number"},
        BadHeader{"TensorIsNull", R"({"a": null})", 0, "unexpected null"},
        BadHeader{"MetadataIsNumber", R"({"__metadata__": {"a": 1}})", 0,
                  "unexpected a number"},
        BadHeader{
            "DuplicateTensor",
            R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})",
            8, "\"a\" appears twice"},
        BadHeader{"DuplicateField",
                  R"({"a": {"dtype": "F32", "dtype": "F32"}})", 0,
                  "tensor \"a\" has dtype twice"},
        BadHeader{"UnknownField", R"({"a": {"type": "F32"}})", 0,
                  "unknown key \"type\""},
        BadHeader{"UnknownDtype", R"({"a": {"dtype": "F31"}})", 0,
                  "unknown dtype \"F31\""},
        BadHeader{"NoShape",
                  R"({"a": {"dtype": "F32", "data_offsets": [0, 4]}})", 4,
                  "needs dtype, shape and data_offsets"},
        BadHeader{"NegativeDimension",
                  R"({"a": {"dtype": "F32", "shape": [-1]}})", 0,
                  "unexpected a negative number"},
        BadHeader{"FractionalDimension",
                  R"({"a": {"dtype": "F32", "shape": [1.5]}})", 0,
                  "unexpected a fraction"},
        BadHeader{"HugeDimension",
                  R"({"a": {"dtype": "F32",
                            "shape": [18446744073709551615]}})",
                  0, "too large"},
        BadHeader{"OneOffset",
                  R"({"a": {"dtype": "F32", "shape": [1],
                            "data_offsets": [0]}})",
                  4, "needs two offsets"},
        BadHeader{"ThreeOffsets",
                  R"({"a": {"dtype": "F32", "shape": [1],
                            "data_offsets": [0, 4, 8]}})",
                  4, "needs two offsets"},
        BadHeader{"Backwards",
                  R"({"a": {"dtype": "F32", "shape": [1],
                            "data_offsets": [4, 0]}})",
                  4, "ends before it begins"},
        BadHeader{"SizeDiffersFromShape",
                  R"({"a": {"dtype": "F32", "shape": [2],
                            "data_offsets": [0, 4]}})",
                  4, "4 bytes do not fit F32 [2]"},
        BadHeader{"OverflowingShape",
                  R"({"a": {"dtype": "F32", "data_offsets": [0, 4],
                            "shape": [4611686018427387904, 4]}})",
                  4, "do not fit"},
        BadHeader{
            "Overlap",
            R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}})",
            12, "tensor \"b\", offsets [4, 12): overlaps"},
        BadHeader{
            "Gap",
            R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                "b": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}})",
            12, "tensor \"b\", offsets [8, 12): leaves a gap"},
        BadHeader{"Truncated",
                  R"({"a": {"dtype": "F32", "shape": [4],
                            "data_offsets": [0, 16]}})",
                  12, "only 12 bytes of data; it is truncated"},
        BadHeader{"BytesAfterTheEnd",
                  R"({"a": {"dtype": "F32", "shape": [1],
                            "data_offsets": [0, 4]}})",
                  5, "ends at 4 of 5 bytes"}),
    [](const auto& info) { return std::string(info.param.name); });

std::string Length(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

TEST(SafetensorsLengthTest, IsLittleEndianAndWithinTheFile) {
  EXPECT_THAT(ParseSafetensorsLength(Length(0x0102), 0x0102 + 8),
              IsOkAndHolds(0x0102));
}

TEST(SafetensorsLengthTest, RefusesWhatIsNoSafetensorsFile) {
  const auto invalid = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  EXPECT_THAT(ParseSafetensorsLength("abc", 3), invalid("a file of 3 bytes"));
  EXPECT_THAT(ParseSafetensorsLength(Length(~uint64_t{0}), 100),
              invalid("the format allows 100000000"));
  EXPECT_THAT(ParseSafetensorsLength(Length(100'000'001), int64_t{1} << 40),
              invalid("the format allows 100000000"));
  EXPECT_THAT(ParseSafetensorsLength(Length(93), 100), invalid("truncated"));
}

}  // namespace
}  // namespace penstock::server::checkpoint
