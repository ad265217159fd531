import Blobs

/// Derives the media type from a file name.
package enum ContentType {
  /// The type of a file of which nothing is known.
  package static let unknown = "application/octet-stream"

  /// The media type for a file name, by its extension without regard to case. Uses registered IANA types where they
  /// exist.
  package static func of(_ path: BytePath) -> String {
    let bytes = path.hasTrailingSlash ? path.name.bytes : path.bytes
    let slash = UInt8(ascii: "/")
    // A leading dot hides a file and does not begin an extension.
    guard let dot = bytes.lastIndex(where: { $0 == UInt8(ascii: ".") || $0 == slash }), dot > 0, bytes[dot] != slash,
      bytes[dot - 1] != slash
    else { return unknown }
    return byExtension[String(decoding: bytes[(dot + 1)...], as: UTF8.self).lowercased()] ?? unknown
  }

  private static let byExtension: [String: String] = [
    // Photographs and pictures
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "jpe": "image/jpeg", "png": "image/png", "gif": "image/gif",
    "webp": "image/webp", "avif": "image/avif", "heic": "image/heic", "heif": "image/heif", "hif": "image/heif",
    "jxl": "image/jxl", "jp2": "image/jp2", "tif": "image/tiff", "tiff": "image/tiff", "bmp": "image/bmp",
    "svg": "image/svg+xml", "ico": "image/vnd.microsoft.icon", "psd": "image/vnd.adobe.photoshop",
    // Camera RAW formats
    "dng": "image/x-adobe-dng", "cr2": "image/x-canon-cr2", "cr3": "image/x-canon-cr3", "nef": "image/x-nikon-nef",
    "arw": "image/x-sony-arw", "orf": "image/x-olympus-orf", "raf": "image/x-fuji-raf", "rw2": "image/x-panasonic-rw2",
    "pef": "image/x-pentax-pef", "srw": "image/x-samsung-srw", "aae": "application/xml", "xmp": "application/rdf+xml",
    // Films
    "mov": "video/quicktime", "qt": "video/quicktime", "mp4": "video/mp4", "m4v": "video/x-m4v", "mpg": "video/mpeg",
    "mpeg": "video/mpeg", "avi": "video/x-msvideo", "mkv": "video/matroska", "webm": "video/webm", "3gp": "video/3gpp",
    "mts": "video/mp2t", "m2ts": "video/mp2t", "insv": "video/mp4", "lrv": "video/mp4", "ogv": "video/ogg",
    "mxf": "application/mxf",
    // Sound
    "mp3": "audio/mpeg", "m4a": "audio/mp4", "aac": "audio/aac", "wav": "audio/wav", "flac": "audio/flac",
    "ogg": "audio/ogg", "opus": "audio/ogg", "aif": "audio/aiff", "aiff": "audio/aiff",
    // Other files
    "pdf": "application/pdf", "zip": "application/zip", "gz": "application/gzip", "tar": "application/x-tar",
    "7z": "application/x-7z-compressed", "json": "application/json", "xml": "application/xml",
    "txt": "text/plain", "csv": "text/csv", "html": "text/html", "htm": "text/html", "md": "text/markdown",
  ]
}
