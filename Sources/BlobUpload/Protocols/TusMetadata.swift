import BlobHTTP
import Blobs

/// `Upload-Metadata`: pairs of a key and a base64 value. tus 1.0 §Creation, Upload-Metadata.
enum TusMetadata {
  /// The fields that identify a file, the decisive one first.
  private static let naming = ["relativePath", "filename"]

  static func value(of target: UploadTarget) -> String {
    var pairs = names(of: target)
    func add(_ key: String, _ value: some Collection<UInt8>) {
      pairs += ","
      pairs += key
      pairs += " "
      pairs += base64(value)
    }
    add("filetype", target.contentType.utf8)
    if target.overwrite {
      add("overwrite", "true".utf8)
      switch target.replaced {
      case .unknown, .unversioned: break
      case .nothing: pairs += ",replaces"
      case .version(let tag): add("replaces", tag.utf8)
      }
    }
    for (key, value) in target.metadata.sorted(by: { $0.key < $1.key }) { add(key, value.utf8) }
    if let time = target.modificationTime, target.metadata[ModificationTime.key] == nil {
      add(ModificationTime.key, time.text.utf8)
    }
    if let group = target.group {
      add(UploadGroup.key, group.id.utf8)
      add(UploadGroup.membersKey, String(group.members).utf8)
      add(UploadGroup.positionKey, String(group.position).utf8)
    }
    return pairs
  }

  /// What the file is called: the fields of the value that identify it.
  static func names(of target: UploadTarget) -> String {
    "filename \(base64(target.path.name.bytes)),relativePath \(base64(target.path.bytes))"
  }

  /// Whether a server's value names another file. nil, or a value without such fields: it says nothing.
  static func namesAnother(_ value: String?, than names: String) -> Bool {
    guard let value else { return false }
    let (ours, theirs) = (fields(of: names), fields(of: value))
    guard let key = naming.first(where: { theirs[$0] != nil }) else { return false }
    return theirs[key] != ours[key]
  }

  /// Values without the padding of base64, which some servers drop.
  private static func fields(of value: String) -> [String: Substring] {
    var fields: [String: Substring] = [:]
    for pair in value.utf8.split(separator: UInt8(ascii: ",")).map({ Substring($0) }) {
      let words = pair.split(separator: " ")
      guard words.count == 2, fields.count < 100 else { continue }
      fields[String(words[0])] = words[1].prefix { $0 != "=" }
    }
    return fields
  }
}

func base64(_ bytes: some Collection<UInt8>) -> String { Base64.encode(bytes) }
