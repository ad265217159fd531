import BlobHTTP
import Blobs
import Synchronization

/// A response that is longer than the transport's limit for bodies.
final class DavListingText: Sendable {
  private let bytes = Mutex<[UInt8]>([])
  private static let most = 16 << 20

  func append(_ more: UnsafeRawBufferPointer) throws(BlobError) {
    let isTooLong = bytes.withLock { bytes in
      bytes.append(contentsOf: more)
      return bytes.count > Self.most
    }
    if isTooLong { throw BlobError(.io, "the listing is longer than \(Self.most) bytes") }
  }

  var text: [UInt8] { bytes.withLock { $0 } }
}

/// The resources in a multistatus response. RFC 4918 §13.
enum DavListing {
  private struct Resource {
    /// As encoded in URLs.
    var path: String
    var size: Int64?
    var isFolder: Bool
  }

  /// Sizes by path, as encoded in URLs. Entries without a size are omitted.
  static func sizes(in text: [UInt8]) -> [String: Int64] {
    resources(in: text).reduce(into: [:]) { sizes, found in if let size = found.size { sizes[found.path] = size } }
  }

  /// The files and folders in `folder`, which lists itself too, perhaps under the path that it has behind a proxy.
  static func entries(in text: [UInt8], of folder: HTTPURL) -> [ListedEntry] {
    func components(_ path: String) -> [[UInt8]] {
      path.utf8.split(separator: UInt8(ascii: "/")).map { PercentCoding.decoded($0) }
    }
    let found = resources(in: text).map { (components: components($0.path), isFolder: $0.isFolder) }
    let own = components(folder.path)
    let lowest = found.map(\.components.count).min() ?? 0
    let depth = found.contains { $0.components.count > lowest } ? lowest : -1
    return found.compactMap { found in
      if found.components == own || found.components.count == depth { return nil }
      return found.components.last.map { ListedEntry(BytePath($0), isFolder: found.isFolder) }
    }
  }

  private static func resources(in text: [UInt8]) -> [Resource] {
    var resources: [Resource] = []
    var rest = text[...]
    while let open = rest.firstIndex(of: UInt8(ascii: "<")), let close = rest[open...].firstIndex(of: UInt8(ascii: ">"))
    {
      let tag = rest[(open + 1)..<close].prefix { $0 > UInt8(ascii: " ") }
      let parts = tag.split { $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
      let name = String(decoding: parts.last ?? [], as: UTF8.self).lowercased()
      rest = rest[(close + 1)...]
      let words = rest.prefix { $0 != UInt8(ascii: "<") }.split { $0 <= UInt8(ascii: " ") }
      let content = String(decoding: words.first ?? [], as: UTF8.self)
      // A closing tag would have the text after it as its content.
      if tag.first == UInt8(ascii: "/") { continue }
      if name == "href" {
        let path = path(content)
        resources.append(Resource(path: path, isFolder: path.hasSuffix("/")))
      } else if let last = resources.indices.last {
        if name == "getcontentlength", let size = Int64(content), size >= 0 { resources[last].size = size }
        if name == "collection" { resources[last].isFolder = true }
      }
    }
    return resources
  }

  /// Some servers write complete URLs instead of paths.
  private static func path(_ reference: String) -> String {
    let reference = entities.reduce(reference) { $0.replacing($1.name, with: $1.text) }
    return HTTPURL(reference)?.path ?? reference
  }

  /// The last one is that of the character that begins all of them. XML 1.0 §4.6.
  private static let entities = [
    (name: "&lt;", text: "<"), (name: "&gt;", text: ">"), (name: "&quot;", text: "\""), (name: "&apos;", text: "'"),
    (name: "&amp;", text: "&"),
  ]
}
