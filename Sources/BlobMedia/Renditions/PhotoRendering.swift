/// The pixel operations of an edit for a picture of a given size.
public struct PhotoRendering: Sendable, Hashable {
  /// The size of the result in pixels.
  public let width: Int
  /// The height of the result in pixels.
  public let height: Int
  /// Maps coordinates of the result to those of the decoded picture.
  let place: Affine

  /// A rectangle of the decoded picture, in whole pixels.
  public struct Area: Sendable, Hashable {
    /// Position and size in pixels, counted from the top left corner.
    public let left, top, width, height: Int
  }

  /// How the pixels of the result are computed.
  public enum Plan: Sendable, Hashable {
    /// Copies the pixels of an area, then rotates or mirrors them.
    case exact(Area, PhotoOrientation)
    /// Interpolates the pixels of an area. `matrix` and `offset` map pixel centres of the area to those of the result.
    case resampled(Area, matrix: [Double], offset: [Double])
  }

  /// How the pixels of the result are computed.
  public let plan: Plan

  /// Throws if the edit cannot be applied to this picture: the result is empty or the crop exceeds the picture.
  ///
  /// - `width`, `height`: size of the stored picture.
  /// - `own`: orientation in the picture's metadata.
  /// - `isTurned`: the decoder has already applied the orientation, as it does for HEIC.
  public init(
    _ edit: PhotoEdit, width: Int, height: Int, orientation own: PhotoOrientation, isTurned: Bool = false
  ) throws(RenditionRefusal) {
    let (wide, high) = (Double(width), Double(height))
    let framed = try Self.frame(edit.frame, wide, high)
    let orientation = edit.orientation ?? own
    // Maps the displayed result to the cropped picture, and that to the stored picture.
    var place = framed.place.after(orientation.stored(framed.width, framed.height))
    let (seenWidth, seenHeight) =
      orientation.swapsSides ? (framed.height, framed.width) : (framed.width, framed.height)
    var decoded = (wide, high)
    if isTurned {
      if own.swapsSides { decoded = (high, wide) }
      // The map of an orientation always has an inverse.
      place = own.stored(wide, high).inverse!.after(place)
    }
    guard seenWidth >= 1, seenHeight >= 1, seenWidth <= 65_535, seenHeight <= 65_535 else {
      throw RenditionRefusal("the frame is \(seenWidth) by \(seenHeight) pixels")
    }
    self.width = Int(seenWidth)
    self.height = Int(seenHeight)
    self.place = place
    plan = try Self.plan(place, seenWidth, seenHeight, within: decoded)
  }

  private typealias Framed = (place: Affine, width: Double, height: Double)

  private static func frame(_ frame: PhotoEdit.Frame, _ wide: Double, _ high: Double) throws(RenditionRefusal) -> Framed
  {
    switch frame {
    case .whole: return (Affine(), wide, high)
    case .corners(let left, let top, let right, let bottom, let angle):
      if angle == 0 {
        let (x, y) = ((left * wide).rounded(), (top * high).rounded())
        return (Affine(tx: x, ty: y), (right * wide).rounded() - x, (bottom * high).rounded() - y)
      }
      let turn = angle * .pi / 180
      let (along, across) = (turn.cosine, turn.sine)
      let (x, y) = ((right - left) * wide, (bottom - top) * high)
      let width = (x * along + y * across).rounded()
      let height = (y * along - x * across).rounded()
      // Computed from the centre, so that rounding of the size does not move it.
      let (middleX, middleY) = ((left + right) / 2 * wide, (top + bottom) / 2 * high)
      let place = Affine(
        a: along, b: -across, c: across, d: along, tx: middleX - (along * width - across * height) / 2,
        ty: middleY - (across * width + along * height) / 2)
      return (place, width, height)
    case .pixels(let transform, let crop): return try pixels(transform, crop, wide, high)
    }
  }

  private static func pixels(
    _ transform: PhotoEdit.Transform, _ crop: PhotoEdit.Rectangle?, _ wide: Double, _ high: Double
  ) throws(RenditionRefusal) -> Framed {
    let forward = Affine(
      a: transform.a, b: transform.c, c: transform.b, d: transform.d, tx: transform.tx, ty: transform.ty)
    guard let back = forward.inverse, forward.isSimilarity, (0.25...16).contains(abs(forward.determinant)) else {
      throw RenditionRefusal("the picture is bent, not only turned")
    }
    let corners = [forward(0, 0), forward(wide, 0), forward(0, high), forward(wide, high)]
    let (low, left) = (corners.map(\.y).min()!, corners.map(\.x).min()!)
    let crop =
      crop
      ?? PhotoEdit.Rectangle(
        x: left, y: low, width: corners.map(\.x).max()! - left, height: corners.map(\.y).max()! - low)
    // Both inputs count y upwards; this code counts downwards.
    let fromTop = Affine(d: -1, tx: crop.x, ty: crop.y + crop.height)
    let place = Affine(d: -1, ty: high).after(back).after(fromTop)
    return (place, crop.width.rounded(), crop.height.rounded())
  }

  private static func plan(
    _ place: Affine, _ width: Double, _ height: Double, within whole: (width: Double, height: Double)
  ) throws(RenditionRefusal) -> Plan {
    let corners = [place(0, 0), place(width, 0), place(0, height), place(width, height)]
    var (left, right) = (corners.map(\.x).min()!, corners.map(\.x).max()!)
    var (top, bottom) = (corners.map(\.y).min()!, corners.map(\.y).max()!)
    guard [left, right, top, bottom].allSatisfy(\.isFinite), left > -1, top > -1, right < whole.width + 1,
      bottom < whole.height + 1
    else { throw RenditionRefusal("the frame reaches beyond the picture") }
    if let turn = PhotoOrientation(turningLike: place) {
      let (wide, high) = turn.swapsSides ? (height, width) : (width, height)
      (left, top) = (left.rounded(), top.rounded())
      guard left >= 0, top >= 0, left + wide <= whole.width, top + high <= whole.height else {
        throw RenditionRefusal("the frame reaches beyond the picture")
      }
      return .exact(Area(left: Int(left), top: Int(top), width: Int(wide), height: Int(high)), turn)
    }
    // Includes the neighbouring pixels that the interpolation needs.
    (left, top) = (max(0, left.rounded(.down) - 3), max(0, top.rounded(.down) - 3))
    (right, bottom) = (min(whole.width, right.rounded(.up) + 3), min(whole.height, bottom.rounded(.up) + 3))
    // libvips maps pixel centres to pixel centres.
    let middles = Affine(tx: -left - 0.5, ty: -top - 0.5).after(place).after(Affine(tx: 0.5, ty: 0.5))
    guard let forward = middles.inverse else { throw RenditionRefusal("the picture is bent, not only turned") }
    let area = Area(left: Int(left), top: Int(top), width: Int(right - left), height: Int(bottom - top))
    return .resampled(
      area, matrix: [forward.a, forward.b, forward.c, forward.d], offset: [forward.tx, forward.ty])
  }
}
