import Blobs

/// Names one file of an asset for later launches of the app, for example `photo:1:40:` with the asset's identifier, which
/// has 40 bytes, and `IMG_0001.HEIC`. The second of two resources of one kind and filename begins with `photo:1.1:`.
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
    let numbers = fields[1].split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    if let number = String(numbers[0]), !number.isEmpty {
      guard let known = Int(number).flatMap(AssetResource.Kind.init(rawValue:)) else { return nil }
      kind = known
    }
    resource = AssetResource(kind: kind, filename: filename)
    if numbers.count > 1 {
      guard let ordinal = String(numbers[1]).flatMap({ Int($0) }), ordinal > 0 else { return nil }
      resource.ordinal = ordinal
    }
  }

  package var path: BytePath {
    let kind = resource.kind.map { "\($0.rawValue)" } ?? ""
    let ordinal = resource.ordinal == 0 ? "" : ".\(resource.ordinal)"
    return BytePath("photo:\(kind)\(ordinal):\(asset.utf8.count):\(asset)\(resource.filename)")
  }
}
