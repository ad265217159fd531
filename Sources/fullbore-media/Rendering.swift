import BlobMedia
import CVips

/// An edit of a picture, computed and ready to be written.
struct Rendering {
  /// Memory in bytes of the program, its libraries and the rows in progress.
  private static let base: Int64 = 72 << 20
  private let picture: Picture
  private let rendering: PhotoRendering
  private let head: JPEGHead

  var width: Int { rendering.width }
  var height: Int { rendering.height }

  /// Throws `refused` if the edit cannot be rendered exactly, or not within the memory budget.
  init(_ edit: PhotoEdit, of picture: Picture) throws(Complaint) {
    let (width, height) = picture.storedSize
    do throws(RenditionRefusal) {
      rendering = try PhotoRendering(
        edit, width: width, height: height, orientation: picture.orientation, isTurned: picture.isHEIC)
    } catch {
      throw Complaint(error.description, status: Complaint.refused)
    }
    self.picture = picture
    head = try JPEGHead(picture, width: rendering.width, height: rendering.height)
    let needed = Self.base + picture.decoderMemory + held
    if needed > Limits.budget {
      throw Complaint(
        "it would take \(needed >> 20) MiB of memory, and \(Limits.budget >> 20) are given to it",
        status: Complaint.refused)
    }
  }

  /// Bytes of pixels that must be in memory, because they are not accessed in the order of decoding.
  private var held: Int64 {
    let bands = Int64(picture.image.bands)
    switch rendering.plan {
    case .exact(_, let turn) where Self.keepsOrder(turn): return 0
    case .exact(let area, _): return Int64(area.width) * Int64(area.height) * bands
    case .resampled(let area, _, _): return Int64(area.width) * Int64(area.height) * bands
    }
  }

  /// Whether the orientation keeps the rows in their order from top to bottom.
  private static func keepsOrder(_ turn: PhotoOrientation) -> Bool { turn.number <= 2 }

  func write(to descriptor: Int32, quality: Int) throws(Complaint) {
    let vips = picture.vips
    let output = JPEGOutput(descriptor, head)
    let image = try rendered()
    let context = Unmanaged.passUnretained(output)
    let failed = cvips_save(
      &vips.api, image.handle, Int32(quality),
      { _, bytes, count, context in
        Unmanaged<JPEGOutput>.fromOpaque(context!).takeUnretainedValue().take(bytes, count)
      }, context.toOpaque())
    withExtendedLifetime(output) {}
    if failed != 0 { throw vips.complaint("render") }
  }

  private func rendered() throws(Complaint) -> Image {
    let vips = picture.vips
    switch rendering.plan {
    case .exact(let area, let turn):
      let part = try cut(area, isHeld: !Self.keepsOrder(turn))
      return try turned(part, turn)
    case .resampled(let area, let matrix, let offset):
      let part = try cut(area, isHeld: true)
      return try Image(
        cvips_resample(
          &vips.api, part.handle, matrix, offset[0], offset[1], Int32(rendering.width), Int32(rendering.height)),
        "straighten", vips)
    }
  }

  private func cut(_ area: PhotoRendering.Area, isHeld: Bool) throws(Complaint) -> Image {
    let vips = picture.vips
    var part = picture.image
    if area.width != part.width || area.height != part.height {
      part = try Image(
        cvips_area(
          &vips.api, part.handle, Int32(area.left), Int32(area.top), Int32(area.width), Int32(area.height)),
        "crop", vips)
    }
    return isHeld ? try Image(vips.api.image_copy_memory(part.handle), "decode", vips) : part
  }

  private func turned(_ image: Image, _ turn: PhotoOrientation) throws(Complaint) -> Image {
    let vips = picture.vips
    let quarters = [3: 2, 5: 1, 6: 1, 7: 3, 8: 3][turn.number] ?? 0
    var result = image
    if quarters > 0 { result = try Image(cvips_turn(&vips.api, result.handle, Int32(quarters)), "turn", vips) }
    if [2, 4, 5, 7].contains(turn.number) {
      result = try Image(cvips_mirror(&vips.api, result.handle, turn.number == 4 ? 1 : 0), "mirror", vips)
    }
    return result
  }
}
