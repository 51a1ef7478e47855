// The example's loader against files that are not what they should be.
#include "idx.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "temporary_directory.h"

namespace fashion {
namespace {

using ::testing::HasSubstr;

std::string bigEndian(std::uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

std::string idx(const std::vector<std::uint32_t>& dimensions, const std::string& data,
                char type = 8) {
  std::string file{'\0', '\0', type, static_cast<char>(dimensions.size())};
  for (const std::uint32_t extent : dimensions) file += bigEndian(extent);
  return file + data;
}

void writeGz(const std::filesystem::path& path, const std::string& content) {
  gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(gzwrite(file, content.data(), static_cast<unsigned>(content.size())),
            static_cast<int>(content.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

class Idx : public ::testing::Test {
 protected:
  // The message, in one line, with the file's name.
  std::string problem(std::size_t dimensions = 1) {
    try {
      (void)readIdx(file_, dimensions);
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr(file_.string()));
      EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("\n")));
      return error.what();
    }
    return "no problem";
  }

  TemporaryDirectory directory_;
  std::filesystem::path file_ = directory_ / "file";
};

TEST_F(Idx, ReadsPlainAndZippedFiles) {
  TemporaryDirectory::write(file_, idx({2, 3}, "abcdef"));
  const IdxArray plain = readIdx(file_, 2);
  EXPECT_EQ(plain.dimensions, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(std::string(plain.values.begin(), plain.values.end()), "abcdef");
  writeGz(file_, idx({2, 3}, "abcdef"));
  EXPECT_EQ(readIdx(file_, 2).values, plain.values);
}

TEST_F(Idx, Missing) {
  EXPECT_THAT(problem(), HasSubstr("no such file"));
  file_ = directory_.path();
  EXPECT_THAT(problem(), HasSubstr("no such file"));
}

TEST_F(Idx, TruncatedAnywhere) {
  const std::string whole = idx({6}, "abcdef");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    TemporaryDirectory::write(file_, whole.substr(0, length));
    EXPECT_THAT(problem(), HasSubstr("truncated")) << length;
  }
}

TEST_F(Idx, ZippedAndTruncatedAnywhere) {
  // Not compressible, so that every cut loses something.
  std::string data;
  for (unsigned i = 0, x = 1; i < 300; ++i) {
    x = x * 1103515245U + 12345U;
    data += static_cast<char>(x >> 16);
  }
  writeGz(file_, idx({300}, data));
  const std::string whole = TemporaryDirectory::read(file_);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    TemporaryDirectory::write(file_, whole.substr(0, length));
    EXPECT_THROW((void)readIdx(file_, 1), DataError) << length << " of " << whole.size();
  }
}

TEST_F(Idx, ZippedAndDamaged) {
  writeGz(file_, idx({20}, "abcdefghijklmnopqrst"));
  std::string content = TemporaryDirectory::read(file_);
  content[content.size() - 6] = static_cast<char>(content[content.size() - 6] ^ 1);
  TemporaryDirectory::write(file_, content);
  EXPECT_THAT(problem(), HasSubstr("damaged"));
}

TEST_F(Idx, Oversized) {
  TemporaryDirectory::write(file_, idx({5}, "abcdef"));
  EXPECT_THAT(problem(), HasSubstr("longer than its header says"));
  writeGz(file_, idx({5}, "abcdef"));
  EXPECT_THAT(problem(), HasSubstr("longer than its header says"));
}

TEST_F(Idx, WrongMagic) {
  TemporaryDirectory::write(file_, "these are no images");
  EXPECT_THAT(problem(), HasSubstr("not an IDX file"));
  TemporaryDirectory::write(file_, idx({6}, "abcdef"));
  EXPECT_THAT(problem(3), HasSubstr("3 dimension(s)"));
  TemporaryDirectory::write(file_, idx({1}, "abcd", 0x0D));
  EXPECT_THAT(problem(), HasSubstr("not an IDX file of bytes"));
}

TEST_F(Idx, ImpossibleSizes) {
  TemporaryDirectory::write(file_, idx({0}, ""));
  EXPECT_THAT(problem(), HasSubstr("empty"));
  TemporaryDirectory::write(file_, idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "abc"));
  EXPECT_THAT(problem(3), HasSubstr("impossibly large"));
}

class ImageSets : public ::testing::Test {
 protected:
  void put(const std::string& images, const std::string& labels) {
    TemporaryDirectory::write(directory_ / "train-images-idx3-ubyte", images);
    writeGz(directory_ / "train-labels-idx1-ubyte.gz", labels);
  }
  TemporaryDirectory directory_;
};

TEST_F(ImageSets, FindsPlainAndZippedFilesSideBySide) {
  put(idx({3, 1, 2}, "aabbcc"), idx({3}, std::string("\0\4\2", 3)));
  const ImageSet set = loadImages(directory_.path(), Split::kTrain);
  EXPECT_EQ(set.count, 3U);
  EXPECT_EQ(set.rows, 1U);
  EXPECT_EQ(set.columns, 2U);
  EXPECT_EQ(set.classes, 5U);
  const ImageSet two = loadImages(directory_.path(), Split::kTrain, 2);
  EXPECT_EQ(two.count, 2U);
  EXPECT_EQ(two.pixels.size(), 4U);
  EXPECT_EQ(two.labels.size(), 2U);
  EXPECT_EQ(loadImages(directory_.path(), Split::kTrain, 99).count, 3U);
}

TEST_F(ImageSets, LabelsMustBelongToTheImages) {
  put(idx({3, 1, 2}, "aabbcc"), idx({2}, "ab"));
  EXPECT_THROW((void)loadImages(directory_.path(), Split::kTrain), DataError);
  EXPECT_THROW((void)loadImages(directory_.path(), Split::kTest), DataError);
  EXPECT_THROW((void)loadImages(directory_ / "nowhere", Split::kTrain), DataError);
}

}  // namespace
}  // namespace fashion
