import Blobs
import Synchronization

/// A file that a watch has sent, or that an earlier one had sent.
struct ArrivedFile: HandedFile {
  let path: BytePath
  /// The version that is at the destination; nil: it is not known.
  let validator: Validator?

  var title: String { shown(path) }

  /// Whether the file is still the version that is at the destination. A program that deletes or moves another version
  /// would take away what nobody has sent. Reading this property blocks.
  var isUnchanged: Bool {
    guard let validator else { return false }
    return (try? FileSource(path).info(Cancellation()).validator) == validator
  }
}

/// Runs the program of `--on-done` for each file that has arrived at every destination.
final class ArrivedFiles: Sendable {
  /// The version of a file that has arrived, and the destinations that have it.
  private struct Arrival {
    var validator: Validator?
    var destinations: Set<Int>
  }
  private struct State {
    /// Files that have not arrived everywhere, by their paths.
    var arrivals: [BytePath: Arrival] = [:]
    var hasToldLimit = false
  }
  private static let most = 10_000
  private let state = Mutex(State())
  private let destinations: Int
  private let queue: FileQueue<ArrivedFile>
  private let notice: @Sendable (String) -> Void

  /// - `output`: for what the program prints, as `PushReport.programOutput`.
  init(
    _ command: UploadCommand, destinations: Int, output: (@Sendable (String) -> Void)?,
    notice: @escaping @Sendable (String) -> Void
  ) {
    self.destinations = destinations
    self.notice = notice
    queue = command.queue(atMost: Self.most, output: output, notice: notice) { (file: ArrivedFile) in
      if file.isUnchanged { return file.path }
      notice("\(file.title) is another version than the one that was sent, or gone: --on-done does not get it now")
      return nil
    }
  }

  /// The file has arrived at this destination. Does not wait.
  func add(_ file: ArrivedFile, at destination: Int) {
    if destinations == 1 { return queue.add(file) }
    let (isEverywhere, isFirstDropped) = state.withLock { state -> (Bool, Bool) in
      var arrival = state.arrivals[file.path] ?? Arrival(validator: file.validator, destinations: [])
      // Another version must arrive everywhere by itself.
      if arrival.validator != file.validator { arrival = Arrival(validator: file.validator, destinations: []) }
      arrival.destinations.insert(destination)
      if arrival.destinations.count == destinations {
        state.arrivals[file.path] = nil
        return (true, false)
      }
      if state.arrivals[file.path] == nil, state.arrivals.count >= Self.most {
        defer { state.hasToldLimit = true }
        return (false, !state.hasToldLimit)
      }
      state.arrivals[file.path] = arrival
      return (false, false)
    }
    if isEverywhere { queue.add(file) }
    if isFirstDropped {
      notice(
        "\(Self.most) files are not at every destination yet: --on-done does not get further ones, unless this watch is "
          + "started again")
    }
  }

  /// Waits for a while until the program was run for the files that wait for it.
  func finish() async { await queue.finish(within: .seconds(10)) }
}
