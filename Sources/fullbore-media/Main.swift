import BlobMedia
import Platform

/// `fullbore-media`: renders the edit of a photo that comes through standard input, which is a file, to JPEG on standard
/// output. It is started by `fullbore`, for each picture anew.
///
///     fullbore-media render [--quality=N] [EDIT...] <ORIGINAL >JPEG
///     fullbore-media check [EDIT...] <ORIGINAL        whether it can be rendered exactly: status 3 and why, if not
///     fullbore-media confinement                      what the kernel refuses a decoder, tried one by one
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
      // Without what libraries do at the end: nothing of theirs is kept.
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

/// What went wrong, and what that means to who has started us.
struct Complaint: Error {
  /// It cannot be rendered exactly, though nothing is broken.
  static let refused: Int32 = 3
  let text: String
  let status: Int32

  init(_ text: String, status: Int32 = 1) {
    self.text = text
    self.status = status
  }
}
