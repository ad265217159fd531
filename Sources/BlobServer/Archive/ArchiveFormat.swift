import Blobs

/// The format of an archive. It says which bytes are around those of the files; how many they are follows from the list of
/// files alone, so the length of the archive is known before its first byte.
enum ArchiveFormat: String, Sendable {
  case zip, tar

  /// The description of a file or folder in an archive.
  struct Member: Sendable {
    /// The path, in UTF-8. A folder has a slash at its end.
    let name: [UInt8]
    let isFolder: Bool
    /// In bytes.
    let length: Int64
    /// When it was modified, in seconds since 1970.
    let seconds: Int64
  }

  var mediaType: String {
    switch self {
    case .zip: "application/zip"
    case .tar: "application/x-tar"
    }
  }

  /// Whether the archive has checksums of the files.
  var hasSums: Bool { self == .zip }

  /// The bytes before those of the file.
  func head(of member: Member) -> [UInt8] {
    switch self {
    case .zip: ZIPFormat.localHeader(member)
    case .tar: TarFormat.header(member)
    }
  }

  /// The bytes after those of the file. Their number does not depend on `sum`.
  func tail(of member: Member, sum: UInt32) -> [UInt8] {
    switch self {
    case .zip: ZIPFormat.descriptor(member, sum: sum)
    case .tar: TarFormat.padding(member)
    }
  }

  /// The entry in the directory after all files; `offset` is where the head is. Their number does not depend on `sum`.
  func directoryEntry(of member: Member, sum: UInt32, offset: Int64) -> [UInt8] {
    switch self {
    case .zip: ZIPFormat.directoryHeader(member, sum: sum, offset: offset)
    case .tar: []
    }
  }

  /// The last bytes. `directory`: the offset and length of the directory.
  func end(count: Int, directory: Range<Int64>) -> [UInt8] {
    switch self {
    case .zip: ZIPFormat.end(count: count, directory: directory)
    case .tar: TarFormat.end
    }
  }
}
