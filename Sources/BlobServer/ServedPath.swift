import BlobHTTP
import Blobs

/// A path below the served folder, safe by construction: no component is empty, `.`, `..` or a reserved name.
///
/// It is created from a URL path, decoded exactly once, or from the metadata of an upload. Components are bytes.
package struct ServedPath: Sendable, Hashable, CustomStringConvertible {
  package private(set) var components: [BytePath] = []
  /// The length in bytes, including the slashes between components.
  private var length = 0

  private static let longest = 3072
  /// Real folders are less deep, and tools that traverse folders have limits of their own.
  private static let deepest = 256

  /// The served folder itself.
  package static let root = ServedPath()
  /// The name of the folder for unfinished uploads, inside the served folder.
  package static let storeName: BytePath = ".fullbore"
  /// The first component of an upload's URL; files cannot have this name.
  package static let uploadName: BytePath = ".fullbore-upload"
  /// The first component of the URLs of the page for browsers; files cannot have this name.
  package static let pageName: BytePath = ".fullbore-page"

  private init() {}

  /// Splits a decoded path at its slashes; `bytes` has no slash at either end.
  package init(_ bytes: some Sequence<UInt8>) throws(ServerError) {
    self = try Self.root.appending(bytes)
  }

  /// Appends the components of `relative` to this path.
  package func appending(_ relative: some Sequence<UInt8>) throws(ServerError) -> ServedPath {
    var path = self
    for part in Array(relative).split(separator: slash, omittingEmptySubsequences: false) {
      try path.append(part)
    }
    return path
  }

  private mutating func append(_ part: ArraySlice<UInt8>) throws(ServerError) {
    let name = BytePath(part)
    switch name {
    case "": throw ServerError(400, "a path may not have an empty component")
    case ".", "..": throw ServerError(400, "a path may not have a component '\(name)'")
    default: break
    }
    if part.contains(0) || part.contains(slash) {
      throw ServerError(400, "a name may not have a NUL or a slash in it")
    }
    if part.count > 255 {
      throw ServerError(400, "a name may not be longer than 255 bytes, this one has \(part.count)", kind: .longName)
    }
    if name.isReserved {
      throw ServerError(403, "the name '\(name)' is kept for the server itself", kind: .reservedName)
    }
    length += part.count + (components.isEmpty ? 0 : 1)
    components.append(name)
    if length > Self.longest {
      throw ServerError(414, "the path is longer than \(Self.longest) bytes", kind: .longName)
    }
    if components.count > Self.deepest {
      throw ServerError(414, "the path has more than \(Self.deepest) components", kind: .longName)
    }
  }

  /// Parses a percent-encoded URL path, which begins with a slash. `isFolder`: it ends with a slash. RFC 3986 §3.3.
  package static func fromURL(_ path: some Sequence<UInt8>) throws(ServerError) -> (path: ServedPath, isFolder: Bool) {
    var parts = Array(path).split(separator: slash, omittingEmptySubsequences: false)[...]
    guard parts.popFirst()?.isEmpty == true, !parts.isEmpty else {
      throw ServerError(400, "a request's path must begin with a slash")
    }
    let isFolder = parts.last!.isEmpty
    if isFolder { parts.removeLast() }
    var served = root
    for part in parts {
      guard let name = PercentCoding.decode(part) else {
        throw ServerError(400, "a percent sign in the path is not followed by two hexadecimal digits")
      }
      try served.append(name[...])
    }
    return (served, isFolder)
  }

  package var isRoot: Bool { components.isEmpty }
  package var bytes: [UInt8] { Array(components.map(\.bytes).joined(separator: [slash])) }
  /// The last component; empty for the root.
  package var name: BytePath { components.last ?? "" }
  package var parent: ServedPath {
    var path = self
    if let last = path.components.popLast() { path.length -= last.bytes.count + (path.isRoot ? 0 : 1) }
    return path
  }
  package var description: String { "/" + BytePath(bytes).description }
  /// Percent-encoded, beginning with a slash.
  package var url: String { "/" + HTTPURL.encode(bytes) }
  /// The URL with a slash at its end, for a folder.
  var folderURL: String { isRoot ? url : url + "/" }
}

extension BytePath {
  /// Reserved names match in any case, because some file systems ignore case.
  fileprivate var isReserved: Bool {
    let lowered = BytePath(bytes.map { UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0 ? $0 | 0x20 : $0 })
    return [ServedPath.storeName, ServedPath.uploadName, ServedPath.pageName].contains(lowered)
  }
}

private let slash = UInt8(ascii: "/")
