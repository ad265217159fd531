import Blobs

/// The name of a camera, from the metadata of a picture, as a folder or a part of a name may be called.
public struct CameraName: Sendable, Hashable {
  /// Letters, digits, spaces and `-_.+()`, and neither empty nor beginning with a dot.
  public let text: String

  /// The text in a path in place of a name that is not known.
  public static let unknown = "unknown"

  /// nil if nothing of the text can be in a name. Every other character becomes a hyphen: what a file says of its camera must
  /// not lead to another folder.
  public init?(_ text: String) {
    var name = ""
    for scalar in text.unicodeScalars.prefix(64) {
      let stays = scalar.properties.isAlphabetic || "0"..."9" ~= scalar || " -_.+()".unicodeScalars.contains(scalar)
      name.unicodeScalars.append(stays ? scalar : "-")
    }
    let trimmed = name.drop { " .-".contains($0) }
    let end = trimmed.lastIndex { !" .-".contains($0) }
    guard let end else { return nil }
    self.text = String(trimmed[...end])
  }

  /// The camera's model, else its manufacturer. nil if the file does not say them.
  ///
  /// Blocks, and reads a bounded number of bytes.
  public static func read(from source: any BlobSource, _ cancel: Cancellation = Cancellation()) -> CameraName? {
    let file = PictureFile(RandomAccessBytes(source, cancel))
    for block in file.exifBlocks {
      guard let camera = TIFFDirectory(file.bytes, in: block)?.camera else { continue }
      if let name = [camera.model, camera.make].lazy.compactMap({ $0.flatMap(CameraName.init) }).first { return name }
    }
    return nil
  }
}
