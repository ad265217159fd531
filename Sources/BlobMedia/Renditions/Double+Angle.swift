#if canImport(Glibc)
  import Glibc
#else
  import Darwin
#endif

extension Double {
  /// Of radians.
  var sine: Double { sin(self) }
  var cosine: Double { cos(self) }
}
