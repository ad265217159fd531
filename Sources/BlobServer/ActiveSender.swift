import Blobs

/// A client that sends files at this moment, or has done so in the last two seconds: between two files there is a gap.
public struct ActiveSender: Sendable {
  /// The client; nil: nobody asks who sends, because `ServerOptions.received` is nil.
  public let sender: Sender?
  /// Bytes of files that have arrived from it since it is active. The number grows until the client is idle for two seconds.
  public let bytesReceived: Int64
  /// Its largest uploads whose bytes are arriving, the largest first, 20 at most; empty between two files.
  public let uploads: [ActiveUpload]
  /// The number of all its uploads whose bytes are arriving.
  public let count: Int
}

/// An upload whose bytes are arriving.
public struct ActiveUpload: Sendable, Hashable {
  /// The path that the file is to get, below the served folder.
  public let path: BytePath
  /// The bytes that have arrived. Of a file that is sent in several parts at once, those of the parts that are arriving.
  public let received: Int64
  /// The length of the whole file in bytes; nil: it is not known.
  public let length: Int64?
}
