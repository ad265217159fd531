/// A geometric edit of a photo: crop, straightening and rotation.
public struct PhotoEdit: Sendable, Hashable {
  /// The part of the stored picture that remains.
  public enum Frame: Sendable, Hashable {
    /// The whole picture.
    case whole
    /// Camera Raw's form: two corners as fractions of width and height, for a rectangle rotated clockwise by `angle`
    /// degrees.
    case corners(left: Double, top: Double, right: Double, bottom: Double, angle: Double)
    /// Core Image's form: maps every point (x, y) to (ax + cy + tx, bx + dy + ty), then crops to a rectangle; nil does
    /// not crop. In pixels; y counts upwards from the lowest row.
    case pixels(transform: Transform, crop: Rectangle?)
  }

  /// An affine map of points; the initial value leaves them where they are.
  public struct Transform: Sendable, Hashable {
    /// The linear part. The case `pixels` of `Frame` says how it is applied.
    public var a = 1.0, b = 0.0, c = 0.0, d = 1.0
    /// The translation in pixels.
    public var tx = 0.0, ty = 0.0
    /// Creates a map that leaves all points where they are.
    public init() {}
  }

  /// A rectangle in pixels.
  public struct Rectangle: Sendable, Hashable {
    /// The corner with the smallest coordinates, and the size.
    public var x, y, width, height: Double
    /// Creates a rectangle from a corner and a size.
    public init(x: Double, y: Double, width: Double, height: Double) {
      (self.x, self.y, self.width, self.height) = (x, y, width, height)
    }
  }

  /// The part of the stored picture that remains.
  public var frame: Frame
  /// The orientation for display of the stored picture; nil keeps the orientation in the original's metadata.
  public var orientation: PhotoOrientation?

  /// Creates an edit. `orientation` nil: the picture keeps its own.
  public init(_ frame: Frame = .whole, orientation: PhotoOrientation? = nil) {
    self.frame = frame
    self.orientation = orientation
  }
}

/// Why an edit cannot be rendered exactly. The original is sent instead.
public struct RenditionRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
  /// Creates a refusal with its reason, which is shown to the user.
  public init(_ reason: String) { description = reason }
}
