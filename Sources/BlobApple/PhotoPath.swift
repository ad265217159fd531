import Blobs

/// Paths of the files of assets below a destination's folder.
package enum PhotoPath {
  /// `<asset>/<name>`, for example `A1B2…/IMG_0001.HEIC`: names are unique within their asset only.
  package static func usual(_ asset: String, _ name: String) -> BytePath {
    BytePath(safe("\(folder(asset))/\(name)"))
  }

  /// An identifier is `UUID/L0/001`; its first part is unique on a device.
  static func folder(_ asset: String) -> String { String(asset.prefix { $0 != "/" }) }

  /// A name of the library may contain anything. No component of the result leads out of the folder, or is empty.
  static func safe(_ path: String) -> [UInt8] {
    let components = path.utf8.split(separator: UInt8(ascii: "/")).map { component in
      let bytes = component.map { $0 == 0 ? UInt8(ascii: "_") : $0 }
      return bytes.allSatisfy { $0 == UInt8(ascii: ".") } ? bytes.map { _ in UInt8(ascii: "_") } : bytes
    }
    return components.isEmpty ? [UInt8(ascii: "_")] : Array(components.joined(separator: [UInt8(ascii: "/")]))
  }
}
