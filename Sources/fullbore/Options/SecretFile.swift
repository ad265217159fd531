import Blobs

/// Reads small files that contain secrets; messages never show their content.
enum SecretFile {
  private static let most = 64 << 10

  /// The lines of the file, trimmed, without empty ones. Error messages name `option`.
  static func lines(of file: BytePath, for option: String) throws(UsageError) -> [String] {
    try text(of: file, for: option).split(whereSeparator: \.isNewline).map { $0.trimmed }.filter { !$0.isEmpty }
  }

  static func text(of file: BytePath, for option: String) throws(UsageError) -> String {
    do throws(BlobError) {
      return String(decoding: try content(of: file), as: UTF8.self)
    } catch {
      throw UsageError("\(option): \(shown(error.message))")
    }
  }

  private static func content(of path: BytePath) throws(BlobError) -> [UInt8] {
    let reader = try FileSource(path).open(at: 0, Cancellation())
    var bytes = [UInt8](repeating: 0, count: most + 1)
    var count = 0
    while count < bytes.count {
      let room = count
      let got = try readSome(reader, &bytes, from: room)
      if got == 0 { break }
      count += got
    }
    if count > most {
      throw BlobError(.unsupported, "\(path): over \(most) bytes are too many for a file with a secret in it")
    }
    return Array(bytes.prefix(count))
  }

  private static func readSome(
    _ reader: any BlobReader, _ bytes: inout [UInt8], from start: Int
  ) throws(BlobError) -> Int {
    do {
      return try bytes.withUnsafeMutableBytes { raw in
        try reader.read(into: UnsafeMutableRawBufferPointer(rebasing: raw[start...]))
      }
    } catch {
      throw error as! BlobError  // withUnsafeMutableBytes rethrows only what `read` threw
    }
  }
}
