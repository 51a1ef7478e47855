// What the mpi engine leaves to MPI, and which way an allreduce takes.
#include "collective/mpi/choose.h"

#include <gtest/gtest.h>

namespace farandole::collective::mpi {
namespace {

constexpr DType kTypes[] = {DType::kUint8,     DType::kInt8,    DType::kUint16,  DType::kInt16,
                            DType::kInt32,     DType::kInt64,   DType::kFloat16, DType::kBfloat16,
                            DType::kFloat32,   DType::kFloat64, DType::kBool,    DType::kComplex64,
                            DType::kComplex128};
constexpr ReduceOp kOps[] = {ReduceOp::kSum,  ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kProduct,
                             ReduceOp::kBand, ReduceOp::kBor, ReduceOp::kBxor};

bool isInteger(DType dtype) {
  return dtype == DType::kUint8 || dtype == DType::kInt8 || dtype == DType::kUint16 ||
         dtype == DType::kInt16 || dtype == DType::kInt32 || dtype == DType::kInt64;
}

TEST(MpiComputes, IntegersUnlessTheyAreScaled) {
  for (const DType dtype : kTypes) {
    if (!isInteger(dtype)) continue;
    for (const ReduceOp op : kOps) {
      EXPECT_TRUE(mpiComputes({dtype, op, {}}));
      EXPECT_FALSE(mpiComputes({dtype, op, Scale{1.0, 1.0, 2}}));
      EXPECT_FALSE(mpiComputes({dtype, op, Scale{0.5, 1.0, 1}}));
    }
    EXPECT_FALSE(mpiComputes({dtype, ReduceOp::kAdasum, {}}));
  }
}

TEST(MpiComputes, SumsAndProductsOfFloatsScaledOrNot) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const ReduceOp op : kOps) {
      const bool ours = op == ReduceOp::kSum || op == ReduceOp::kProduct;
      EXPECT_EQ(mpiComputes({dtype, op, {}}), ours);
      EXPECT_EQ(mpiComputes({dtype, op, Scale{2.0, 0.5, 3}}), ours);
    }
    EXPECT_FALSE(mpiComputes({dtype, ReduceOp::kAdasum, {}}));
  }
}

TEST(MpiComputes, OnlySumsOfComplexNumbers) {
  for (const DType dtype : {DType::kComplex64, DType::kComplex128}) {
    for (const ReduceOp op : kOps) {
      EXPECT_EQ(mpiComputes({dtype, op, {}}), op == ReduceOp::kSum);
    }
  }
}

TEST(MpiComputes, NeverHalvesAndTruths) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kBool}) {
    for (const ReduceOp op : kOps) EXPECT_FALSE(mpiComputes({dtype, op, {}}));
  }
}

TEST(NativeSize, FromTheSizeGivenOn) {
  EXPECT_FALSE(nativeSize(8, 9));
  EXPECT_TRUE(nativeSize(9, 9));
  EXPECT_TRUE(nativeSize(2, 1));
  EXPECT_FALSE(nativeSize(1, 1));
  EXPECT_FALSE(nativeSize(1000, 0));
}

TEST(ChooseAllreduce, ByMembersAndSize) {
  const Reduction sum{DType::kFloat32, ReduceOp::kSum, {}};
  EXPECT_EQ(chooseAllreduce(sum, 1 << 20, 1, 2), Algorithm::kLocal);
  EXPECT_EQ(chooseAllreduce(sum, 1 << 20, 9, 9), Algorithm::kNative);
  EXPECT_EQ(chooseAllreduce(sum, 0, 9, 9), Algorithm::kNative);
  // All members' arrays together have 64 KiB.
  EXPECT_EQ(chooseAllreduce(sum, 16 << 10, 4, 9), Algorithm::kGathered);
  EXPECT_EQ(chooseAllreduce(sum, (16 << 10) + 4, 4, 9), Algorithm::kExchange);
  EXPECT_EQ(chooseAllreduce(sum, 0, 4, 9), Algorithm::kGathered);
  EXPECT_EQ(chooseAllreduce(sum, std::size_t{1} << 40, 4, 9), Algorithm::kExchange);
}

TEST(ChooseAllreduce, WhatMpiDoesNotComputeIsOursInSetsOfAnySize) {
  const Reduction half{DType::kFloat16, ReduceOp::kSum, {}};
  EXPECT_EQ(chooseAllreduce(half, 1 << 20, 64, 2), Algorithm::kExchange);
  EXPECT_EQ(chooseAllreduce(half, 16, 64, 2), Algorithm::kGathered);
  // Two runs agree: never MPI's own order.
  const Reduction sum{DType::kFloat32, ReduceOp::kSum, {}};
  EXPECT_EQ(chooseAllreduce(sum, 1 << 20, 64, 0), Algorithm::kExchange);
}

}  // namespace
}  // namespace farandole::collective::mpi
