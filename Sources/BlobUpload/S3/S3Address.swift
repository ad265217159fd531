import BlobHTTP
import Blobs

/// The location of a bucket over HTTP.
public struct S3Address: Sendable, Codable, Hashable {
  /// The name of the bucket.
  public var bucket: String
  /// The URL of a server that is not Amazon's; nil: Amazon's own, in the region.
  public var endpoint: String?
  /// The region, which is part of each signature, also for servers that are not Amazon's.
  public var region: String
  /// Whether the bucket's name is part of the host name; nil: only for Amazon, where the name permits it.
  public var isVirtual: Bool?

  /// Creates an address. `endpoint` nil: Amazon's server in the region.
  public init(bucket: String, endpoint: String? = nil, region: String = "us-east-1", isVirtual: Bool? = nil) {
    self.bucket = bucket
    self.endpoint = endpoint
    self.region = region
    self.isVirtual = isVirtual
  }

  /// Whether the server is Amazon's own.
  public var isAmazon: Bool { endpoint == nil }

  /// The bucket's own URL, with a trailing slash; nil: the endpoint is not a URL, or the bucket's name cannot be part
  /// of one.
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

  /// Letters, digits, dots, hyphens and, in old buckets, underscores.
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

  /// Whether the name may be part of a host name, as names of regions are.
  public static func isRegion(_ name: String) -> Bool {
    !name.isEmpty && name.utf8.count <= 63
      && name.utf8.allSatisfy { byte in
        UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
          || UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
      }
  }
}
