import Blobs

/// Names one file of an asset for later launches of the app, for example `photo:1:40:` with the asset's identifier, which
/// has 40 bytes, and `IMG_0001.HEIC`.
package struct PhotoIdentity: Sendable, Hashable {
  package var asset: String
  package var resource: AssetResource

  package init(asset: String, resource: AssetResource) {
    self.asset = asset
    self.resource = resource
  }

  /// nil if `path` was not made by `path`. It comes from a journal, so it may be anything.
  package init?(_ path: BytePath) {
    let fields = path.description.utf8.split(
      separator: UInt8(ascii: ":"), maxSplits: 3, omittingEmptySubsequences: false)
    guard fields.count == 4, Array(fields[0]) == Array("photo".utf8),
      let count = Int(String(fields[2]) ?? ""), 0...fields[3].count ~= count,
      let asset = String(fields[3].prefix(count)), let filename = String(fields[3].dropFirst(count))
    else { return nil }
    self.asset = asset
    var kind: AssetResource.Kind?
    if let number = String(fields[1]), !number.isEmpty {
      guard let known = Int(number).flatMap(AssetResource.Kind.init(rawValue:)) else { return nil }
      kind = known
    }
    resource = AssetResource(kind: kind, filename: filename)
  }

  package var path: BytePath {
    let kind = resource.kind.map { "\($0.rawValue)" } ?? ""
    return BytePath("photo:\(kind):\(asset.utf8.count):\(asset)\(resource.filename)")
  }
}
