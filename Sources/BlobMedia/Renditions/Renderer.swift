import Blobs
import Platform

/// The program `fullbore-media`, which renders edits. Each picture gets its own process.
public struct Renderer: Sendable, Hashable {
  /// The path of the program.
  public let program: BytePath
  /// Versions of the program and of its decoders and encoders. The output may differ between versions.
  public let version: String

  /// Time limit for the next bytes of output, and for the exit after the last byte. A process that exceeds it is
  /// killed.
  public var patience = Duration.seconds(120)

  /// Starts the helper at `program` to get its version. This call blocks. Throws if it cannot be started.
  public init(_ program: BytePath, _ cancel: Cancellation = Cancellation()) throws(BlobError) {
    self.program = program
    let process = try RenderProcess(program, ["--version"], input: nil)
    let (answer, failure) = try Self.answer(of: process, patience, cancel)
    try cancel.check("start \(program)")
    if let failure { throw BlobError(.unsupported, "\(program): \(failure.text)") }
    version = answer
  }

  /// The path of the helper in `folder`, otherwise in `PATH`; nil if there is none. This call blocks.
  public static func path(besides folder: BytePath) -> BytePath? {
    let path = getenv("PATH").map { BytePath(cString: $0).bytes } ?? []
    let folders = [folder] + path.split(separator: UInt8(ascii: ":")).map { BytePath($0) }
    return folders.filter(\.isAbsolute).map { $0.appending("fullbore-media") }
      .first { $0.withCString { access($0, X_OK) } == 0 }
  }

  /// Checks without rendering: returns nil if the edit can be rendered exactly, otherwise the reason. This call blocks.
  public func refusal(
    of edit: PhotoEdit, on original: any BlobSource, _ cancel: Cancellation = Cancellation()
  ) throws(BlobError) -> RenditionRefusal? {
    let process = try start(["check"] + edit.arguments, try original.open(at: 0, cancel))
    let (_, failure) = try Self.answer(of: process, patience, cancel)
    try cancel.check("look at a picture")
    return failure.map { RenditionRefusal($0.text) }
  }

  /// Starts the helper for `original`. The helper reads the file itself.
  func start(_ arguments: [String], _ original: any BlobReader) throws(BlobError) -> RenderProcess {
    guard let region = original.fileRegion() else {
      throw BlobError(.unsupported, "render a picture: it is in no file")
    }
    return try RenderProcess(program, arguments, input: region.descriptor)
  }

  /// The helper's short text output, and its failure.
  private static func answer(
    of process: RenderProcess, _ patience: Duration, _ cancel: Cancellation
  ) throws(BlobError) -> (String, RenderFailure?) {
    try cancel.whileWaiting(wakeUp: { process.kill() }) { () throws(BlobError) in
      var bytes: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 512)
      while bytes.count < 4096 {
        let read = chunk.withUnsafeMutableBytes { buffer in
          Result { () throws(BlobError) in try process.read(into: buffer, patience: patience) }
        }
        let count = try read.get()
        if count == 0 { break }
        bytes += chunk.prefix(count)
      }
      return (String(decoding: bytes, as: UTF8.self).trimmed, process.wait(patience: patience))
    }
  }
}

extension PhotoEdit {
  /// The edit as command line arguments of the helper, with all digits of its numbers.
  public var arguments: [String] {
    var words = orientation.map { ["--orientation=\($0.number)"] } ?? []
    func list(_ numbers: Double...) -> String { numbers.map { "\($0)" }.joined(separator: ",") }
    switch frame {
    case .whole: break
    case .corners(let left, let top, let right, let bottom, let angle):
      words.append("--corners=\(list(left, top, right, bottom, angle))")
    case .pixels(let transform, let crop):
      words.append(
        "--transform=\(list(transform.a, transform.b, transform.c, transform.d, transform.tx, transform.ty))")
      if let crop { words.append("--rectangle=\(list(crop.x, crop.y, crop.width, crop.height))") }
    }
    return words
  }

  /// nil for arguments that `arguments` cannot produce.
  public init?(arguments: [String]) {
    self.init()
    for word in arguments {
      let parts = word.split(separator: "=", maxSplits: 1)
      guard parts.count == 2 else { return nil }
      let numbers = parts[1].split(separator: ",").compactMap { Double($0) }.filter(\.isFinite)
      switch (parts[0], numbers.count) {
      case ("--orientation", 1):
        guard let number = Int(exactly: numbers[0]), let known = PhotoOrientation(number) else { return nil }
        orientation = known
      case ("--corners", 5):
        frame = .corners(
          left: numbers[0], top: numbers[1], right: numbers[2], bottom: numbers[3], angle: numbers[4])
      case ("--transform", 6):
        var transform = Transform()
        (transform.a, transform.b, transform.c, transform.d) = (numbers[0], numbers[1], numbers[2], numbers[3])
        (transform.tx, transform.ty) = (numbers[4], numbers[5])
        frame = .pixels(transform: transform, crop: nil)
      case ("--rectangle", 4):
        guard case .pixels(let transform, _) = frame else { return nil }
        let crop = Rectangle(x: numbers[0], y: numbers[1], width: numbers[2], height: numbers[3])
        frame = .pixels(transform: transform, crop: crop)
      default: return nil
      }
    }
  }
}
