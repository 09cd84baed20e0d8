#include "server/model/layout.h"

#include "common/log/log.h"

namespace penstock::server::model {

int64_t Aligned(int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t Field::bytes() const {
  return shape.elements() * device::ElementBytes(type);
}

device::Tensor Field::At(std::byte* base) const {
  CHECK(base != nullptr) << name;
  return device::Tensor(base + offset, type, shape);
}

Field Layout::Add(absl::string_view name, device::DType type,
                  const device::Shape& shape) {
  Field field{.name = std::string(name), .type = type, .shape = shape};
  field.offset = AddBlock(field.bytes());
  return field;
}

int64_t Layout::AddBlock(int64_t bytes) {
  CHECK_GE(bytes, 0);
  const int64_t offset = bytes_;
  bytes_ += Aligned(bytes);
  return offset;
}

}  // namespace penstock::server::model
