import BlobMedia
import Blobs
import CVips

/// A photo that can be rendered: an image that is not decoded yet, and its metadata.
struct Picture {
  let image: Image
  let vips: Vips
  /// The decoder of HEIC has already applied the orientation.
  let isHEIC: Bool
  let exif: ExifBlock?
  let profile: [UInt8]?
  let xmp: [UInt8]?
  let iptc: [UInt8]?

  /// Throws `refused` for a picture that JPEG cannot represent without loss of channels or depth.
  init(_ descriptor: Int32, _ vips: Vips) throws(Complaint) {
    guard let source = vips.api.source_new_from_descriptor(descriptor) else {
      throw vips.complaint("open the original")
    }
    defer { vips.api.object_unref(UnsafeMutableRawPointer(source)) }
    guard let loader = vips.api.foreign_find_load_source(source) else {
      throw Complaint("it is neither JPEG nor HEIC, which alone are rendered", status: Complaint.refused)
    }
    isHEIC = String(cString: loader).hasPrefix("VipsForeignLoadHeif")
    image = try Image(cvips_open(&vips.api, source), "open the original", vips)
    self.vips = vips
    let mark = Array("Exif\0\0".utf8)
    exif = image.blob("exif-data").flatMap { $0.starts(with: mark) ? ExifBlock(Array($0.dropFirst(mark.count))) : nil }
    profile = image.blob("icc-profile-data")
    xmp = image.blob("xmp-data")
    iptc = isHEIC ? nil : image.blob("iptc-data")
    // HEIC may define its colours by properties that libvips does not expose.
    if isHEIC, profile?.isEmpty ?? true {
      throw Complaint("it is a HEIC without a colour profile", status: Complaint.refused)
    }
    if isHEIC, !(exif?.orientation ?? .upright).isThatOfBoxes(in: OriginalFile(descriptor: descriptor)) {
      throw Complaint("EXIF and HEIC do not say alike how it is to be held", status: Complaint.refused)
    }
    if !image.hasBytes { throw Complaint("it has more than 8 bits a colour", status: Complaint.refused) }
    if ![1, 3].contains(image.bands), isHEIC || image.bands != 4 {
      throw Complaint("it has \(image.bands) channels, which JPEG has not", status: Complaint.refused)
    }
  }

  var orientation: PhotoOrientation { exif?.orientation ?? .upright }

  /// The size of the stored picture, before the orientation is applied.
  var storedSize: (width: Int, height: Int) {
    isHEIC && orientation.number >= 5 ? (image.height, image.width) : (image.width, image.height)
  }

  /// Bytes of memory that the decoder needs in addition to the rows in progress.
  var decoderMemory: Int64 {
    let pixels = Int64(image.width) * Int64(image.height)
    // A HEIC decoder holds the picture as YCbCr and as RGB at once.
    if isHEIC { return pixels * 6 }
    // A decoder of progressive JPEG holds all coefficients at once.
    return image.isSet("interlaced") || image.isSet("jpeg-multiscan") ? pixels * Int64(image.bands) * 2 : 0
  }
}
