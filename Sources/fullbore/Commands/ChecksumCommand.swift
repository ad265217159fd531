import BlobCrypto
import Blobs
import Platform

/// Prints digests of files in the format of `sha256sum`.
struct ChecksumCommand: Command {
  static let declaration = CommandDeclaration(
    name: "checksum", synopsis: "checksum FILE...", summary: "digests of files, streamed",
    options: [.value("algorithm", "NAME", names)],
    examples: [
      .init("checksum film.mov", "the SHA-256 of a file, as sha256sum prints it"),
      .init("checksum --algorithm xxh128 *.mov", "as hash lists of films have it"),
    ],
    notes: """
      FILE may be -, standard input. The algorithm is sha256 when none is given. The output is sha256sum's:
      'sha256sum --check' reads it.
      """)

  private static let names = Digest.Algorithm.all.map { $0.name }.joined(separator: ", ")

  let files: [BytePath]
  let algorithm: Digest.Algorithm

  init(_ arguments: Arguments) throws(UsageError) {
    files = arguments.operands
    if files.isEmpty { throw UsageError("of which file?") }
    algorithm =
      try arguments.parsed("algorithm", wanted: "one of \(Self.names)") { Digest.Algorithm($0) } ?? .sha256
  }

  var outputIsResult: Bool { true }

  func run() async -> ExitStatus {
    await BlockingPool.shared.run { self.printAll() }
  }

  private func printAll() -> ExitStatus {
    var status = ExitStatus.ok
    for file in files {
      do throws(BlobError) {
        let digest = try file == "-" ? digestOfInput() : Digest.reading(Self.source(of: file), algorithm)
        Console.output.write(bytes: Self.line(digest.hexValue(), file))
        Console.output.flush()
      } catch {
        Console.error.write("fullbore checksum: \(shown(error.message))\n")
        status = .failed
      }
    }
    return status
  }

  /// A file with size 0 may nevertheless have content, as in /proc.
  private static func source(of file: BytePath) throws(BlobError) -> any BlobSource {
    var status = stat()
    guard file.status(&status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_size == 0,
      try UnsizedFileSource.isNeeded(for: file)
    else { return FileSource(file) }
    return UnsizedFileSource(file)
  }

  private func digestOfInput() throws(BlobError) -> Digest {
    let digest = Digest(algorithm)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = read(0, buffer.baseAddress, buffer.count)
      if count < 0 && errno == EINTR { continue }
      if count < 0 { throw BlobError(.io, "read standard input: \(String(cString: strerror(errno)))", errno: errno) }
      if count == 0 { return digest }
      digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// A name with a line break or a backslash is escaped, and the line then begins with a backslash. GNU coreutils
  /// manual, "md5sum invocation".
  static func line(_ digest: String, _ name: BytePath) -> [UInt8] {
    var escaped: [UInt8] = []
    for byte in name.bytes {
      switch byte {
      case UInt8(ascii: "\\"): escaped += Array("\\\\".utf8)
      case UInt8(ascii: "\n"): escaped += Array("\\n".utf8)
      case UInt8(ascii: "\r"): escaped += Array("\\r".utf8)
      default: escaped.append(byte)
      }
    }
    let mark = escaped.count == name.bytes.count ? "" : "\\"
    return Array("\(mark)\(digest)  ".utf8) + escaped + [UInt8(ascii: "\n")]
  }
}

extension Digest {
  /// The digest of a whole source. This call blocks.
  static func reading(
    _ source: any BlobSource, _ algorithm: Algorithm, _ cancel: Cancellation = Cancellation(),
    noteRead: (Int) -> Void = { _ in }
  ) throws(BlobError) -> Digest {
    let digest = Digest(algorithm)
    try read(source, into: [digest], cancel, noteRead: noteRead)
    return digest
  }
}
