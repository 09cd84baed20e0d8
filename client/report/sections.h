// The parts of the page, each from what the files say. A part without anything
// to show is empty.
#ifndef PENSTOCK_CLIENT_REPORT_SECTIONS_H_
#define PENSTOCK_CLIENT_REPORT_SECTIONS_H_

#include <string>

#include "client/report/run_files.h"

namespace penstock::client::report {

// Name, state, the failure if there was one, and the numbers in big letters.
std::string HeaderSection(const RunFiles& files);
// The heatmap of a steady step below the predicted one, and its bubble beside
// what was predicted.
std::string StepSection(const RunFiles& files);
// Loss, then speed, gradient norm, learning rate and step time.
std::string CurvesSection(const RunFiles& files);
// What was predicted beside what was measured.
std::string PredictionSection(const RunFiles& files);
// Layers and memory of each rank.
std::string StagesSection(const RunFiles& files);
// Failures with the first cause first, then the rest in order.
std::string EventsSection(const RunFiles& files);
// Model, data, versions, digests, and job.yaml itself.
std::string FactsSection(const RunFiles& files);

}  // namespace penstock::client::report

#endif  // PENSTOCK_CLIENT_REPORT_SECTIONS_H_
