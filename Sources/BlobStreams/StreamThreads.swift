import Blobs

/// Threads on which streams open and read their sources, so that the streams' methods need not wait. They start as
/// needed and end when idle. A stream occupies a thread only while it waits for its source.
public final class StreamThreads: Sendable {
  /// The threads on which asynchronous streams open and read; at most 64.
  public static let fetching = StreamThreads(64)
  /// The threads on which streams for multipart forms open; at most 4.
  public static let opening = StreamThreads(4)

  private let pool: BlockingPool

  /// `most`: the maximum number of threads. A source that stalls occupies one of them until its stream is closed.
  public init(_ most: Int) { pool = BlockingPool("fullbore-stream", threads: most, patience: .seconds(5)) }

  /// The current number of threads.
  public var count: Int { pool.threads }

  func run(_ work: @escaping @Sendable () -> Void) { pool.submit(work) }
}
