import BlobUpload
import Blobs

/// Options for posts to `form+` destinations.
struct FormOptions: Sendable, Hashable {
  enum Field: Sendable, Hashable {
    case typed(FormField)
    /// A file of `K=V` lines, read when needed, because they may be secret.
    case file(BytePath)
  }

  /// nil: the default, `file`.
  var field: String?
  var fields: [Field] = []
  var expectedStatus: Int?
  var reply: JSONPath?

  init() {}

  init(_ arguments: Arguments) throws(UsageError) {
    field = try arguments.text("field")
    if field?.isEmpty == true { throw UsageError("--field '': wanted a name") }
    for value in arguments.all("form") { fields.append(try Self.field(value)) }
    expectedStatus = try arguments.count("expect", 200...399)
    reply = try arguments.parsed("reply", wanted: "a path in JSON, like $.files[0].url") { JSONPath($0) }
    _ = try post()
  }

  var isEmpty: Bool { self == FormOptions() }

  /// The form, with the fields read from their files now.
  func post() throws(UsageError) -> FormPost {
    var post = FormPost(field: field ?? "file", expectedStatus: expectedStatus, reply: reply)
    for field in fields {
      switch field {
      case .typed(let field): post.fields.append(field)
      case .file(let path):
        for line in try SecretFile.lines(of: path, for: "--form") {
          guard let field = Self.pair(line) else {
            throw UsageError("--form @\(shown(path)): wanted lines like NAME=VALUE")
          }
          post.fields.append(field)
        }
      }
    }
    return post
  }

  private static func field(_ value: BytePath) throws(UsageError) -> Field {
    if value.bytes.first == UInt8(ascii: "@") { return .file(BytePath(value.bytes.dropFirst()).absolute()) }
    guard let text = String(validating: value.bytes, as: UTF8.self), let field = pair(text) else {
      throw UsageError("--form: wanted NAME=VALUE, or @FILE with such lines")
    }
    return .typed(field)
  }

  private static func pair(_ text: String) -> FormField? {
    guard let sign = text.firstIndex(of: "="), sign > text.startIndex else { return nil }
    return FormField(name: String(text[..<sign]), value: String(text[text.index(after: sign)...]))
  }

  static let declared: [OptionDeclaration] = [
    .value("field", "NAME", "the name of the file's field; file when not given"),
    .value(
      "form", "K=V", isRepeatable: true,
      "a further field, or @FILE of such lines; {name} and {path} are the file's"),
    .value("expect", "STATUS", "the status that means success, like 303; any 2xx when not given"),
    .value("reply", "JSONPATH", "where the answer says where the file is, like $.files[0].url"),
  ].inGroup(.forms)
}

extension FormOptions {
  /// The settings for the journal. Of typed fields it only notes that there were some, since they may be secret.
  var journaled: JournalForm {
    var form = JournalForm(field: field, expectedStatus: expectedStatus, reply: reply?.description)
    for field in fields {
      switch field {
      case .typed: form.hadTypedFields = true
      case .file(let path): form.fieldFiles.append(path.description)
      }
    }
    return form
  }

  /// The options as they were when the push started. Throws if they are no longer known.
  init(_ kept: JournalForm) throws(UploadError) {
    if kept.hadTypedFields {
      throw UploadError(
        .giveUp, .journal,
        "the fields typed with --form are not kept, since they may be secret: run the push again, or put them into a file"
      )
    }
    field = kept.field
    fields = kept.fieldFiles.map { .file(BytePath($0)) }
    expectedStatus = kept.expectedStatus
    reply = kept.reply.flatMap { JSONPath($0) }
  }

  /// Like `post()`, but throws `UploadError`, for a time when the user can no longer correct the options.
  func postNow() throws(UploadError) -> FormPost {
    do throws(UsageError) { return try post() } catch { throw UploadError(.giveUp, .destination, error.message) }
  }
}
