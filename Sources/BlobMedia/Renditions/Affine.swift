/// An affine map from coordinates of one picture to those of another: (x, y) to (ax + by + tx, cx + dy + ty).
/// Coordinates count in pixels from the upper left corner; the centre of the first pixel is (½, ½).
struct Affine: Sendable, Hashable {
  var a = 1.0, b = 0.0, c = 0.0, d = 1.0
  var tx = 0.0, ty = 0.0

  func callAsFunction(_ x: Double, _ y: Double) -> (x: Double, y: Double) { (a * x + b * y + tx, c * x + d * y + ty) }

  /// The composition that applies `other` first, then this map.
  func after(_ other: Affine) -> Affine {
    let (x, y) = self(other.tx, other.ty)
    return Affine(
      a: a * other.a + b * other.c, b: a * other.b + b * other.d, c: c * other.a + d * other.c,
      d: c * other.b + d * other.d, tx: x, ty: y)
  }

  var determinant: Double { a * d - b * c }

  /// nil if the map is not invertible.
  var inverse: Affine? {
    let size = determinant
    guard size.isFinite, abs(size) > 1e-9 else { return nil }
    var result = Affine(a: d / size, b: -b / size, c: -c / size, d: a / size)
    (result.tx, result.ty) = (-(result.a * tx + result.b * ty), -(result.c * tx + result.d * ty))
    return result
  }

  /// Whether the map only rotates, mirrors and scales uniformly.
  var isSimilarity: Bool {
    let tolerance = 1e-4 * max(1, abs(determinant))
    return abs(a * b + c * d) < tolerance && abs(a * a + c * c - b * b - d * d) < tolerance
  }
}
