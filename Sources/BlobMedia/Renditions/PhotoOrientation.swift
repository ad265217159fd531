import Blobs

/// The EXIF orientation of a stored picture, which says on which sides its first row and column are. TIFF 6.0,
/// Orientation.
public struct PhotoOrientation: Sendable, Hashable {
  /// 1 to 8; 1 is upright.
  public let number: Int

  /// Creates an orientation by its EXIF number; nil for a number outside 1 to 8.
  public init?(_ number: Int) {
    guard (1...8).contains(number) else { return nil }
    self.number = number
  }

  /// Reads the orientation of a picture; `upright` if it has none. Reads a bounded number of bytes, and blocks.
  public static func read(from source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> PhotoOrientation {
    let file = PictureFile(RandomAccessBytes(source, cancel))
    return file.exifBlocks.first.flatMap { TIFFDirectory(file.bytes, in: $0)?.orientation } ?? .upright
  }

  /// Reads the orientation in a TIFF block, which excludes the `Exif` prefix before it.
  public static func read(fromTIFF bytes: ArraySlice<UInt8>) -> PhotoOrientation {
    TIFFDirectory(bytes)?.orientation ?? .upright
  }

  /// The first row of pixels is at the top, and the first column at the left.
  public static let upright = PhotoOrientation(1)!

  /// Whether width and height are swapped.
  var swapsSides: Bool { number >= 5 }

  /// Maps displayed coordinates to stored ones. The stored picture is `width` by `height`.
  func stored(_ width: Double, _ height: Double) -> Affine {
    switch number {
    case 2: Affine(a: -1, d: 1, tx: width)
    case 3: Affine(a: -1, d: -1, tx: width, ty: height)
    case 4: Affine(d: -1, ty: height)
    case 5: Affine(a: 0, b: 1, c: 1, d: 0)
    case 6: Affine(a: 0, b: 1, c: -1, d: 0, ty: height)
    case 7: Affine(a: 0, b: -1, c: -1, d: 0, tx: width, ty: height)
    case 8: Affine(a: 0, b: -1, c: 1, d: 0, tx: width)
    default: Affine()
    }
  }

  /// The orientation whose `stored` map has the same rotation and mirroring; nil if there is none.
  init?(turningLike place: Affine) {
    func isSame(_ one: Double, _ other: Double) -> Bool { abs(one - other) < 1e-6 }
    let found = (1...8).first { number in
      let turn = PhotoOrientation(number)!.stored(0, 0)
      return isSame(turn.a, place.a) && isSame(turn.b, place.b) && isSame(turn.c, place.c) && isSame(turn.d, place.d)
    }
    guard let found else { return nil }
    number = found
  }
}
