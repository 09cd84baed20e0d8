// Assignments with one thing wrong each.
#include "server/executor/stage_assignment.h"

#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/matchers/status_matchers.h"
#include "tests/server/executor/assignments.h"

namespace penstock::server::executor {
namespace {

using penstock::testing::Assignments;
using penstock::testing::LowerNamed;
using penstock::testing::StatusIs;
using penstock::testing::TinyModel;
using ::testing::HasSubstr;

// Rank `rank` of 3, tied: 4 edges on ranks 0 and 2, ties included, 4 on rank 1.
v1::Assignment Good(int rank) {
  return Assignments(LowerNamed({.ranks = 3, .micro_batches = 4}),
                     {.model = TinyModel(), .micro_batch = 2})[rank];
}

TEST(StageAssignmentTest, WiresEachChunkToItsEdges) {
  ASSERT_OK_AND_ASSIGN(const StageAssignment middle, DecodeAssignment(Good(1)));
  ASSERT_EQ(middle.chunks.size(), 1);
  const AssignedChunk& chunk = middle.chunks[0];
  const auto edge = [&middle](int index) {
    return ToString(middle.edges[index].end.edge);
  };
  EXPECT_EQ(edge(chunk.activation_in), "activation 0->1");
  EXPECT_EQ(edge(chunk.activation_out), "activation 1->2");
  EXPECT_EQ(edge(chunk.gradient_in), "gradient 2->1");
  EXPECT_EQ(edge(chunk.gradient_out), "gradient 1->0");
  EXPECT_EQ(middle.tied_gradient, kNone);
  EXPECT_EQ(middle.FirstTrainingSequence(3, 1), 2 * 4 * 2 + 2);

  ASSERT_OK_AND_ASSIGN(const StageAssignment first, DecodeAssignment(Good(0)));
  EXPECT_EQ(first.chunks[0].activation_in, kNone);
  EXPECT_FALSE(first.edges[first.tied_gradient].sends());
  EXPECT_TRUE(first.edges[first.tied_sum].sends());
}

TEST(StageAssignmentTest, TakesModelledTimes) {
  v1::Assignment assignment = Good(1);
  ASSERT_OK_AND_ASSIGN(const StageAssignment plain,
                       DecodeAssignment(assignment));
  EXPECT_EQ(plain.modelled_transfers, std::nullopt);
  EXPECT_EQ(plain.chunks[0].modelled_times.of(v1::OP_FORWARD),
            absl::ZeroDuration());
  EXPECT_EQ(plain.transport(1, "secret").acks, transport::Acks::kDelayed);

  v1::ModelledTimes& times =
      *assignment.mutable_chunks(0)->mutable_modelled_times();
  times.mutable_forward()->set_nanos(2);
  times.mutable_backward_input()->set_nanos(3);
  times.mutable_backward_weight()->set_nanos(4);
  v1::ModelledTransfers& transfers = *assignment.mutable_modelled_transfers();
  transfers.mutable_latency()->set_seconds(1);
  transfers.set_seconds_per_byte(0.5);
  ASSERT_OK_AND_ASSIGN(const StageAssignment modelled,
                       DecodeAssignment(assignment));
  const ModelledTimes& decoded = modelled.chunks[0].modelled_times;
  EXPECT_EQ(decoded.of(v1::OP_FORWARD), absl::Nanoseconds(2));
  EXPECT_EQ(decoded.of(v1::OP_BACKWARD_INPUT), absl::Nanoseconds(3));
  EXPECT_EQ(decoded.of(v1::OP_BACKWARD_WEIGHT), absl::Nanoseconds(4));
  EXPECT_EQ(decoded.of(v1::OP_BACKWARD), absl::Nanoseconds(7));
  ASSERT_TRUE(modelled.modelled_transfers.has_value());
  EXPECT_EQ(modelled.modelled_transfers->latency, absl::Seconds(1));
  EXPECT_EQ(modelled.modelled_transfers->seconds_per_byte, 0.5);
  EXPECT_EQ(modelled.transport(1, "secret").acks, transport::Acks::kImmediate);

  times.mutable_backward()->set_nanos(11);
  ASSERT_OK_AND_ASSIGN(const StageAssignment apart,
                       DecodeAssignment(assignment));
  EXPECT_EQ(apart.chunks[0].modelled_times.of(v1::OP_BACKWARD),
            absl::Nanoseconds(11));
}

struct BadAssignment {
  std::string name;
  int rank = 0;
  std::function<void(v1::Assignment&)> spoil;
  std::string error;
};

class BadAssignmentTest : public ::testing::TestWithParam<BadAssignment> {};

TEST_P(BadAssignmentTest, IsRefusedWithItsField) {
  v1::Assignment assignment = Good(GetParam().rank);
  GetParam().spoil(assignment);
  EXPECT_THAT(DecodeAssignment(assignment),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr(GetParam().error)));
}

v1::Chunk& Chunk(v1::Assignment& a) { return *a.mutable_chunks(0); }
// The edge of that kind; the rank has one at most where it is asked for.
v1::EdgeAssignment& Edge(v1::Assignment& a, v1::EdgeKind kind) {
  for (v1::EdgeAssignment& edge : *a.mutable_edges()) {
    if (edge.edge().kind() == kind) return edge;
  }
  return *a.add_edges();
}
void Remove(v1::Assignment& a, v1::EdgeKind kind) {
  for (int i = 0; i < a.edges_size(); ++i) {
    if (a.edges(i).edge().kind() != kind) continue;
    a.mutable_edges()->DeleteSubrange(i, 1);
    return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllRules, BadAssignmentTest,
    ::testing::Values(
        BadAssignment{"ModelledTime", 1,
                      [](auto& a) {
                        a.mutable_chunks(0)
                            ->mutable_modelled_times()
                            ->mutable_backward_weight()
                            ->set_nanos(-1);
                      },
                      "modelled_times.backward_weight is -1ns"},
        BadAssignment{
            "ModelledLatency", 1,
            [](auto& a) {
              a.mutable_modelled_transfers()->mutable_latency()->set_seconds(
                  -1);
            },
            "modelled_transfers.latency is -1s"},
        BadAssignment{"ModelledBandwidth", 1,
                      [](auto& a) {
                        a.mutable_modelled_transfers()->set_seconds_per_byte(
                            std::numeric_limits<double>::infinity());
                      },
                      "modelled_transfers.seconds_per_byte is inf"},
        BadAssignment{"Rank", 0, [](auto& a) { a.set_rank(3); }, "rank 3 of 3"},
        BadAssignment{"Family", 0,
                      [](auto& a) { a.mutable_model()->clear_family(); },
                      "model.family 0 is not known"},
        BadAssignment{"Model", 0,
                      [](auto& a) { a.mutable_model()->set_heads(0); },
                      "heads"},
        BadAssignment{"Optimizer", 0,
                      [](auto& a) { a.mutable_optimizer()->clear_kind(); },
                      "optimizer.kind 0 is not known"},
        BadAssignment{"MicroBatch", 0, [](auto& a) { a.set_micro_batch(0); },
                      "micro_batch 0, at least 1"},
        BadAssignment{"MicroBatches", 0,
                      [](auto& a) { a.set_micro_batches(0); },
                      "micro_batches 0, at least 1"},
        BadAssignment{"SequenceTooLong", 0,
                      [](auto& a) { a.set_sequence_length(9); },
                      "sequence_length 9, from 1 to the context, 8"},
        BadAssignment{"NoDeadline", 0,
                      [](auto& a) { a.clear_command_deadline(); },
                      "must be above 0"},
        BadAssignment{"NoChunks", 0, [](auto& a) { a.clear_chunks(); },
                      "chunks is empty"},
        BadAssignment{"NoSlots", 0, [](auto& a) { Chunk(a).set_slots(0); },
                      "chunk of stage 0: slots 0, at least 1"},
        BadAssignment{"BlocksBeyondTheModel", 1,
                      [](auto& a) { Chunk(a).set_end_block(3); }, "of 2"},
        BadAssignment{
            "NoLayers", 1,
            [](auto& a) { Chunk(a).set_end_block(Chunk(a).first_block()); },
            "chunk of stage 1: has no layers"},
        BadAssignment{"StageTwice", 1,
                      [](auto& a) { *a.add_chunks() = Chunk(a); },
                      "stage 1 is given twice"},
        BadAssignment{"EmbeddingElsewhere", 1,
                      [](auto& a) { Chunk(a).set_embedding(true); },
                      "stage 0, and no other, has the embedding"},
        BadAssignment{"EdgeOfOthers", 0,
                      [](auto& a) {
                        auto& edge = *a.add_edges();
                        edge = a.edges(0);
                        edge.mutable_edge()->set_source_stage(1);
                        edge.mutable_edge()->set_target_stage(2);
                        edge.mutable_edge()->set_kind(v1::EDGE_KIND_ACTIVATION);
                      },
                      "is no stage of rank 0"},
        BadAssignment{"EdgeBackwards", 0,
                      [](auto& a) {
                        Edge(a, v1::EDGE_KIND_ACTIVATION)
                            .mutable_edge()
                            ->set_kind(v1::EDGE_KIND_GRADIENT);
                      },
                      "gradient 0->1: joins the wrong stages"},
        BadAssignment{
            "EdgeKind", 0,
            [](auto& a) {
              Edge(a, v1::EDGE_KIND_ACTIVATION).mutable_edge()->clear_kind();
            },
            "edge kind 0 is not known"},
        BadAssignment{"EdgeTwice", 0,
                      [](auto& a) { *a.add_edges() = a.edges(0); },
                      "is given twice"},
        BadAssignment{
            "NoCapacity", 0,
            [](auto& a) { Edge(a, v1::EDGE_KIND_GRADIENT).set_capacity(0); },
            "gradient 1->0: capacity 0"},
        BadAssignment{"NoSendBuffer", 0,
                      [](auto& a) {
                        Edge(a, v1::EDGE_KIND_ACTIVATION).set_send_buffers(0);
                      },
                      "send_buffers 0, at least 1"},
        BadAssignment{"NoActivationOut", 0,
                      [](auto& a) { Remove(a, v1::EDGE_KIND_ACTIVATION); },
                      "stage 0: has no edge for its output activation"},
        BadAssignment{"NoGradientIn", 0,
                      [](auto& a) { Remove(a, v1::EDGE_KIND_GRADIENT); },
                      "stage 0: has no edge for its output gradient"},
        BadAssignment{"CapacityIsNotSlots", 1,
                      [](auto& a) { Chunk(a).set_slots(9); },
                      "stage 1: 9 slots, but capacity"},
        BadAssignment{
            "LocalGradients", 1,
            [](auto& a) { Chunk(a).set_local_gradient_slots(1); },
            "local_gradient_slots 1, but the next stage is on another "
            "rank"},
        BadAssignment{"NoTiedEdge", 0,
                      [](auto& a) { Remove(a, v1::EDGE_KIND_TIED_SUM); },
                      "tied edges: missing"},
        BadAssignment{
            "TiedWithoutTie", 2,
            [](auto& a) { a.mutable_model()->set_tied_embeddings(false); },
            "the model's embedding is not tied"},
        BadAssignment{"TiedCapacity", 0,
                      [](auto& a) {
                        Edge(a, v1::EDGE_KIND_TIED_GRADIENT).set_capacity(2);
                      },
                      "tied gradient 2->0: capacity 2, but there is 1 slot"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace penstock::server::executor
