import BlobHTTP
import Blobs

/// Where a bucket is, over HTTP.
public struct S3Address: Sendable, Codable, Hashable {
  public var bucket: String
  /// A server that is not Amazon's, as a URL; nil: Amazon's own, in the region.
  public var endpoint: String?
  public var region: String
  /// The bucket's name goes into the host's; nil: where Amazon wants it so.
  public var isVirtual: Bool?

  public init(bucket: String, endpoint: String? = nil, region: String = "us-east-1", isVirtual: Bool? = nil) {
    self.bucket = bucket
    self.endpoint = endpoint
    self.region = region
    self.isVirtual = isVirtual
  }

  public var isAmazon: Bool { endpoint == nil }

  /// The bucket's own URL, with a slash at its end; nil: the endpoint is no URL, or the bucket's name cannot be part of
  /// one.
  public var url: HTTPURL? {
    guard Self.isBucketName(bucket), let base = HTTPURL(endpoint ?? amazon), base.query == nil else { return nil }
    if !isVirtualHost { return base.appending(pathBytes: Array("\(bucket)/".utf8)) }
    guard fitsHostName, !base.host.hasPrefix("[") else { return nil }
    let port = base.authority.dropFirst(base.host.count)
    return HTTPURL(
      "\(base.scheme)://\(bucket).\(base.host)\(port)\(base.path.hasSuffix("/") ? base.path : base.path + "/")")
  }

  private var isVirtualHost: Bool { isVirtual ?? (isAmazon && fitsHostName && !bucket.contains(".")) }

  private var amazon: String {
    "https://s3.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")/"
  }

  private var fitsHostName: Bool {
    bucket.utf8.allSatisfy { $0 != UInt8(ascii: "_") && !(UInt8(ascii: "A")...UInt8(ascii: "Z") ~= $0) }
  }

  /// Letters, digits, dots, hyphens and, in old ones, underscores.
  public static func isBucketName(_ name: String) -> Bool {
    let allowed = name.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
        true
      default: false
      }
    }
    return allowed && 3...255 ~= name.utf8.count && !name.hasPrefix(".") && !name.contains("..")
  }

  /// Names of regions are put into host names.
  public static func isRegion(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 63
      && name.utf8.allSatisfy { byte in
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
          || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      }
  }
}
