import Platform

extension Double {
  /// The sine of this angle in radians.
  var sine: Double { sin(self) }
  var cosine: Double { cos(self) }
}
