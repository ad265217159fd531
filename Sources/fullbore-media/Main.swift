import BlobMedia
import Platform

/// `fullbore-media` renders the edit of a photo to JPEG on standard output. The photo is a file on standard input.
/// `fullbore` starts a new process for each picture.
///
///     fullbore-media render [--quality=N] [EDIT...] <ORIGINAL >JPEG
///     fullbore-media check [EDIT...] <ORIGINAL        whether it can be rendered exactly; if not, status 3 and why
///     fullbore-media confinement                      attempts each operation that the kernel must refuse a decoder
///     fullbore-media --version
@main
struct Main {
  static func main() {
    Limits.set()
    do throws(Complaint) {
      try run(CommandLine.arguments.dropFirst().map { $0 })
    } catch {
      let text = Array((error.text + "\n").utf8)
      _ = write(2, text, text.count)
      // Skips the exit handlers of libraries, which have nothing to save.
      _exit(error.status)
    }
    _exit(0)
  }

  private static func run(_ words: [String]) throws(Complaint) {
    let vips = try Vips()
    switch words.first {
    case "--version": put("fullbore-media 1, \(vips.version), libraries \(LoadedLibraries.digest())\n")
    case "confinement":
      try Confinement.begin()
      put(Confinement.report())
    case "check":
      try Confinement.begin()
      let rendering = try Rendering(try edit(words.dropFirst()), of: try Picture(0, vips))
      put("\(rendering.width)x\(rendering.height)\n")
    case "render":
      var words = words.dropFirst()
      var quality = 93
      if let word = words.first, word.hasPrefix("--quality=") {
        guard let number = Int(word.dropFirst(10)), (1...100).contains(number) else { throw usage }
        quality = number
        words = words.dropFirst()
      }
      try Confinement.begin()
      let rendering = try Rendering(try edit(words), of: try Picture(0, vips))
      try rendering.write(to: 1, quality: quality)
    default: throw usage
    }
  }

  private static func edit(_ words: some Collection<String>) throws(Complaint) -> PhotoEdit {
    guard let edit = PhotoEdit(arguments: Array(words)) else { throw usage }
    return edit
  }

  private static let usage = Complaint(
    "usage: fullbore-media render|check [EDIT...] <ORIGINAL | confinement | --version", status: 2)

  private static func put(_ text: String) {
    let bytes = Array(text.utf8)
    if write(1, bytes, bytes.count) < bytes.count { _exit(1) }
  }
}

/// An error message, and the exit status for the parent process.
struct Complaint: Error {
  /// The exit status for an edit that cannot be rendered exactly, without an error.
  static let refused: Int32 = 3
  let text: String
  let status: Int32

  init(_ text: String, status: Int32 = 1) {
    self.text = text
    self.status = status
  }
}
