/// A geometric edit of a photo: crop, straightening and rotation.
public struct PhotoEdit: Sendable, Hashable {
  /// The part of the stored picture that remains.
  public enum Frame: Sendable, Hashable {
    case whole
    /// Camera Raw's form: two corners as fractions of width and height, for a rectangle rotated clockwise by `angle`
    /// degrees.
    case corners(left: Double, top: Double, right: Double, bottom: Double, angle: Double)
    /// Core Image's form: maps every point (x, y) to (ax + cy + tx, bx + dy + ty), then crops to a rectangle; nil does
    /// not crop. In pixels; y counts upwards from the lowest row.
    case pixels(transform: Transform, crop: Rectangle?)
  }

  public struct Transform: Sendable, Hashable {
    public var a = 1.0, b = 0.0, c = 0.0, d = 1.0
    public var tx = 0.0, ty = 0.0
    public init() {}
  }

  public struct Rectangle: Sendable, Hashable {
    public var x, y, width, height: Double
    public init(x: Double, y: Double, width: Double, height: Double) {
      (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
  }

  public var frame: Frame
  /// The orientation for display of the stored picture; nil keeps the orientation in the original's metadata.
  public var orientation: PhotoOrientation?

  public init(_ frame: Frame = .whole, orientation: PhotoOrientation? = nil) {
    self.frame = frame
    self.orientation = orientation
  }
}

/// Why an edit cannot be rendered exactly. The original is sent instead.
public struct RenditionRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
  public init(_ reason: String) { description = reason }
}
