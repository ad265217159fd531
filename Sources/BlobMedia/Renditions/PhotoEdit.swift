/// What was done to the frame of a photo, and to nothing else: cut, straightened, turned.
public struct PhotoEdit: Sendable, Hashable {
  /// Which part of the picture as it is stored remains.
  public enum Frame: Sendable, Hashable {
    case whole
    /// Camera Raw's: two corners as shares of width and height, of a rectangle turned by `angle` degrees, clockwise.
    case corners(left: Double, top: Double, right: Double, bottom: Double, angle: Double)
    /// Core Image's: first every place (x, y) goes to (ax + cy + tx, bx + dy + ty), then a rectangle is cut, nil: all of it.
    /// In pixels, y counting from the lowest row upwards.
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
  /// How the stored picture is to be seen; nil: as the original says of itself.
  public var orientation: PhotoOrientation?

  public init(_ frame: Frame = .whole, orientation: PhotoOrientation? = nil) {
    self.frame = frame
    self.orientation = orientation
  }
}

/// Why an edit cannot be rendered exactly: the original goes in its place.
public struct RenditionRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  public let description: String
  public init(_ reason: String) { description = reason }
}
