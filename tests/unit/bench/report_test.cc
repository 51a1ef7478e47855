// What the report makes of measurements: classes, ratios, formats.
#include "bench/report.h"

#include <gtest/gtest.h>

namespace farandole::bench {
namespace {

Measurement measured(const std::string& name, Side side, Memory memory, double nearTime,
                     double farTime) {
  Measurement m;
  m.contender = name;
  m.side = side;
  m.memory = memory;
  m.bytes = 1000;
  for (int i = 0; i < 3; ++i) m.samples.push_back({nearTime, Distance::kNear});
  for (int i = 0; i < 2; ++i) m.samples.push_back({farTime, Distance::kFar});
  return m;
}

std::vector<Measurement> example() {
  return {measured("engine shared", Side::kOurs, Memory::kShared, 2e-6, 8e-6),
          measured("bound shared", Side::kBound, Memory::kShared, 1e-6, 6e-6),
          measured("bound ordinary", Side::kBound, Memory::kOrdinary, 1.5e-6, 7e-6),
          measured("slow & <old>", Side::kPeer, Memory::kOrdinary, 9e-6, 9e-6),
          measured("quick", Side::kPeer, Memory::kOrdinary, 5e-6, 10e-6)};
}

TEST(Report, ComparesWithinAClass) {
  Report report("test", 2);
  const auto rows = report.add(example());
  ASSERT_EQ(rows.size(), 10u);
  const Row& nearRow = rows[0];
  EXPECT_EQ(nearRow.distance, Distance::kNear);
  EXPECT_EQ(nearRow.rounds, 3u);
  EXPECT_DOUBLE_EQ(nearRow.ratio, 2.5);
  EXPECT_EQ(nearRow.bestPeer, "quick");
  EXPECT_DOUBLE_EQ(nearRow.ofBound, 0.5);
  EXPECT_DOUBLE_EQ(nearRow.algorithmBandwidth, 1000 / 2e-6);
  const Row& farRow = rows[5];
  EXPECT_EQ(farRow.distance, Distance::kFar);
  EXPECT_EQ(farRow.rounds, 2u);
  EXPECT_EQ(farRow.bestPeer, "slow & <old>");
  EXPECT_DOUBLE_EQ(farRow.ratio, 9.0 / 8);
  EXPECT_EQ(rows[3].ratio, 0) << "a peer has no ratio to itself";
}

TEST(Report, Formats) {
  Report report("test & more", 2);
  report.add(example());
  const std::string csv = report.csv();
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11);
  EXPECT_NE(csv.find("1000,engine shared,farandole,near,3,"), std::string::npos);
  EXPECT_NE(report.json().find("\"best_peer\": \"quick\""), std::string::npos);
  const std::string svg = report.svg();
  EXPECT_NE(svg.find("test &amp; more"), std::string::npos);
  EXPECT_NE(svg.find("slow &amp; &lt;old&gt;"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(report.ratios().find("2.50x  quick"), std::string::npos);
}

TEST(Report, EmptyPlotIsStillAPlot) {
  const std::string svg = Report("nothing", 2).svg();
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
}

TEST(Report, SaysWhenAFileCannotBeWritten) {
  EXPECT_FALSE(writeFile("/nonexistent/file.csv", "x").ok());
}

}  // namespace
}  // namespace farandole::bench
