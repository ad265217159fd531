import Blobs
import Synchronization

extension Uploader {
  /// Starts to upload one source as `path` below the destination, in a task of its own, and returns at once. The
  /// parameters are those of `upload(_:as:)`, and with a journal the same call resumes the upload after any
  /// interruption, in this process or another.
  ///
  /// The upload runs on when the returned value is discarded.
  public func start(
    _ source: any BlobSource, as path: BytePath, identity: BytePath? = nil,
    contentType: String = "application/octet-stream", metadata: [String: String] = [:], overwrite: Bool = false
  ) -> RunningUpload {
    let state = RunningUpload.Sampled()
    let task = Task { () -> Result<UploadResult?, UploadError> in
      defer { state.end() }
      do throws(UploadError) {
        return .success(
          try await upload(
            source, as: path, identity: identity, contentType: contentType, metadata: metadata, overwrite: overwrite,
            started: { state.begin($0) }))
      } catch {
        return .failure(error)
      }
    }
    return RunningUpload(task: task, state: state)
  }
}

/// An upload that runs in a task of its own: its progress, its result, and the way to stop it.
public struct RunningUpload: Sendable {
  fileprivate let task: Task<Result<UploadResult?, UploadError>, Never>
  fileprivate let state: Sampled

  /// The result; nil: the source was uploaded before and has not changed, so nothing was sent. Waits for the end of the
  /// upload. Throws as `Uploader.upload` does. Cancelling the task that waits does not stop the upload.
  public var result: UploadResult? {
    get async throws(UploadError) { try await task.value.get() }
  }

  /// Stops the upload; `result` then throws with side `.cancelled`, unless the upload has ended before. What the server
  /// has stays there, and a later upload of the same source with the same journal resumes from it.
  public func cancel() { task.cancel() }

  /// How far the upload is: a value at once, then one every 100 ms at most, whenever bytes have moved, and one at the
  /// end. The sequence ends with the upload, successful or not; an upload that sends nothing gives no value. Each
  /// iteration begins with the present state. Cancelling the task that iterates ends only the iteration.
  public var progress: Steps { Steps(state: state) }

  /// A state of the upload.
  public struct Step: Sendable, Hashable {
    /// Bytes of the source that were handed to the connection. Decreases when bytes are sent again.
    public var sent: Int64
    /// Bytes from the start that the server has confirmed.
    public var acknowledged: Int64
    /// The offset from which an upload of an earlier run was resumed; 0 for a new one.
    public var resumed: Int64
  }

  /// The states of an upload over time; see `RunningUpload.progress`.
  public struct Steps: AsyncSequence, Sendable {
    fileprivate let state: Sampled

    public func makeAsyncIterator() -> Iterator { Iterator(state: state) }

    /// Waits for changes. It neither keeps the upload alive nor stops it.
    public struct Iterator: AsyncIteratorProtocol {
      fileprivate let state: Sampled
      private var last: Step?
      private var isOver = false

      fileprivate init(state: Sampled) { self.state = state }

      public mutating func next() async -> Step? {
        while !isOver {
          let (step, hasEnded) = state.sample()
          if hasEnded { isOver = true }
          if let step, step != last {
            last = step
            return step
          }
          if isOver { break }
          do { try await Task.sleep(for: .milliseconds(100)) } catch { isOver = true }
        }
        return nil
      }
    }
  }

  /// The progress of an upload, which is read by those who iterate.
  fileprivate final class Sampled: Sendable {
    private let state = Mutex<(progress: UploadProgress?, hasEnded: Bool)>((nil, false))

    func begin(_ progress: UploadProgress) { state.withLock { $0.progress = progress } }
    func end() { state.withLock { $0.hasEnded = true } }

    /// `step` nil: nothing is sent yet.
    func sample() -> (step: Step?, hasEnded: Bool) {
      let (progress, hasEnded) = state.withLock { $0 }
      return (
        progress.map { Step(sent: $0.sent, acknowledged: $0.acknowledged, resumed: $0.resumed) }, hasEnded
      )
    }
  }
}
