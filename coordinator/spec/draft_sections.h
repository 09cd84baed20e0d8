// Where the structs of a job stand in a draft. Each is there once, so that a
// row of the key table names a member by its struct: &OptimizerSpec::lr.
#ifndef PENSTOCK_COORDINATOR_SPEC_DRAFT_SECTIONS_H_
#define PENSTOCK_COORDINATOR_SPEC_DRAFT_SECTIONS_H_

#include "coordinator/spec/job_spec.h"
#include "coordinator/spec/schema.h"

namespace penstock::coordinator::spec {

// Borrowed from `draft`.
template <typename Section>
Section& SectionIn(Draft& draft) = delete;

template <>
inline Draft& SectionIn(Draft& draft) {
  return draft;
}
template <>
inline JobSpec& SectionIn(Draft& draft) {
  return draft.spec;
}
template <>
inline ModelSpec& SectionIn(Draft& draft) {
  return draft.spec.model;
}
template <>
inline RopeScaling& SectionIn(Draft& draft) {
  return draft.spec.model.rope_scaling;
}
template <>
inline DataSpec& SectionIn(Draft& draft) {
  return draft.spec.data;
}
template <>
inline BatchSpec& SectionIn(Draft& draft) {
  return draft.spec.batch;
}
template <>
inline PipelineSpec& SectionIn(Draft& draft) {
  return draft.spec.pipeline;
}
template <>
inline OptimizerSpec& SectionIn(Draft& draft) {
  return draft.spec.optimizer;
}
template <>
inline LrSchedule& SectionIn(Draft& draft) {
  return draft.spec.lr_schedule;
}
template <>
inline CheckpointSpec& SectionIn(Draft& draft) {
  return draft.spec.checkpoint;
}
template <>
inline RecoverySpec& SectionIn(Draft& draft) {
  return draft.spec.recovery;
}
template <>
inline SchedulingSpec& SectionIn(Draft& draft) {
  return draft.spec.scheduling;
}
template <>
inline VirtualSpec& SectionIn(Draft& draft) {
  return draft.spec.virtual_times;
}
template <>
inline Trackers& SectionIn(Draft& draft) {
  return draft.spec.trackers;
}
// Exists from here on.
template <>
inline EvaluateSpec& SectionIn(Draft& draft) {
  if (!draft.spec.evaluate.has_value()) draft.spec.evaluate.emplace();
  return *draft.spec.evaluate;
}

}  // namespace penstock::coordinator::spec

#endif  // PENSTOCK_COORDINATOR_SPEC_DRAFT_SECTIONS_H_
