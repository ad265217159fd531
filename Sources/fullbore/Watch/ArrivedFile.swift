import Blobs

/// A file that a watch has sent, or that an earlier one had sent.
struct ArrivedFile: HandedFile {
  let path: BytePath
  /// The version that is at the destination; nil: it is not known.
  let validator: Validator?

  var title: String { shown(path) }

  /// Whether the file is still the version that is at the destination. A program that deletes or moves another version would
  /// take away what nobody has sent. Blocks.
  var isUnchanged: Bool {
    guard let validator else { return false }
    return (try? FileSource(path).info(Cancellation()).validator) == validator
  }
}
