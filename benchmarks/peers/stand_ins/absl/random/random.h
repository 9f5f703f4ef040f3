// Stand-in for the one class of Abseil that headers of RoDe name; no kernel uses it.
#pragma once

namespace absl {
class BitGen {};
}  // namespace absl
