import CVips

/// The libvips library, loaded at run time and configured.
final class Vips {
  var api = cvips_api()

  init() throws(Complaint) {
    if let missing = cvips_load(&api) {
      throw Complaint("\(String(cString: missing)) is missing: install libvips (Debian: libvips42)")
    }
    if cvips_start(&api) != 0 { throw complaint("libvips does not start") }
    cvips_load_plugins()
  }

  var version: String { "libvips \(api.version(0)).\(api.version(1)).\(api.version(2))" }

  /// An error with the message of libvips.
  func complaint(_ operation: String) -> Complaint {
    let text = (api.error_buffer().map { String(cString: $0) } ?? "").split(separator: "\n").prefix(3).joined(
      separator: "; ")
    return Complaint(text.isEmpty ? operation : "\(operation): \(text)")
  }
}

/// Owns an image of libvips.
final class Image {
  let handle: OpaquePointer
  let vips: Vips

  /// `handle` is a result of libvips; nil means that `operation` failed.
  init(_ handle: OpaquePointer?, _ operation: String, _ vips: Vips) throws(Complaint) {
    guard let handle else { throw vips.complaint(operation) }
    self.handle = handle
    self.vips = vips
  }

  deinit { vips.api.object_unref(UnsafeMutableRawPointer(handle)) }

  var width: Int { Int(vips.api.image_get_width(handle)) }
  var height: Int { Int(vips.api.image_get_height(handle)) }
  var bands: Int { Int(vips.api.image_get_bands(handle)) }
  /// Whether channels are unsigned and have eight bits.
  var hasBytes: Bool { vips.api.image_get_format(handle) == 0 }

  func has(_ field: String) -> Bool { vips.api.image_get_typeof(handle, field) != 0 }

  func isSet(_ field: String) -> Bool {
    var value: Int32 = 0
    return has(field) && vips.api.image_get_int(handle, field, &value) == 0 && value != 0
  }

  func blob(_ field: String) -> [UInt8]? {
    guard has(field) else { return nil }
    var bytes: UnsafeRawPointer?
    var count = 0
    guard vips.api.image_get_blob(handle, field, &bytes, &count) == 0, let bytes else { return nil }
    return Array(UnsafeRawBufferPointer(start: bytes, count: count))
  }
}
