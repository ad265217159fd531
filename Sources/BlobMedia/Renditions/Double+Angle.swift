import Platform

extension Double {
  /// Of radians.
  var sine: Double { sin(self) }
  var cosine: Double { cos(self) }
}
