import BlobHTTP
import BlobQueue
import BlobUpload
import Blobs

// The status of a queue that several machines share. It is made from sums that the database keeps: no list of files is read,
// except of those that have failed.
extension StatusCommand {
  func tell(sharing url: String) async -> ExitStatus {
    do throws(JournalError) {
      let state = try await QueueSession.threads.run { [choice, showsAll] () throws(JournalError) in
        let queue = try SharedQueue(url, on: machineName())
        queue.stop()
        return try QueueState(queue, choice, showsAll: showsAll)
      }
      do throws(UsageError) { try choice.check(isAmong: state.known) } catch { return refuse(error) }
      Console.output.write(isJSON ? state.json(only) : state.text(only))
      return .ok
    } catch {
      Console.error.write("fullbore status: \(shown(error.message))\n")
      return .failed
    }
  }
}

/// The state of a shared queue, as it is shown.
struct QueueState: Sendable {
  private struct Place {
    let destination: JournalDestination
    let sums: [QueueSum]
    let failures: [FailedItem]
  }
  let known: [JournalDestination]
  private let places: [Place]
  private let unlisted: [(push: UnlistedPush, endpoint: String)]
  private let bound: [(machine: String, count: Int64)]
  /// Most failures of one destination that are shown, unless all are wanted.
  private static let most = 20

  /// Blocks.
  init(_ queue: SharedQueue, _ choice: DestinationChoice, showsAll: Bool) throws(JournalError) {
    let destinations = try queue.destinations()
    let sums = Dictionary(grouping: try queue.sums(), by: \.destination)
    known = Array(destinations.values)
    var places: [Place] = []
    for (id, destination) in destinations.sorted(by: { $0.key < $1.key }) where choice.contains(destination) {
      guard let own = sums[id] else { continue }
      let hasFailed = own.contains { $0.state >= 3 }
      places.append(
        Place(
          destination: destination, sums: own,
          failures: hasFailed ? try queue.failures(at: id, limit: showsAll ? 1_000_000 : Self.most) : []))
    }
    self.places = places
    unlisted = try queue.unlisted().compactMap { push in
      guard let destination = destinations[push.destination], choice.contains(destination) else { return nil }
      return (push, destination.endpoint)
    }
    bound = try queue.bound()
  }

  private static let states = [(3...4, "failed"), (1...1, "under way"), (0...0, "waiting"), (2...2, "done")]

  func text(_ only: JournalStatus.Standing?) -> String {
    if places.isEmpty, unlisted.isEmpty {
      return "The queue has nothing of that: nothing was pushed yet, or only elsewhere.\n"
    }
    var text = ""
    for place in places {
      text += "\(shown(place.destination.endpoint)) (\(place.destination.protocolName))\n"
      for (states, name) in Self.states where only == nil || name == "failed" {
        let sums = place.sums.filter { states.contains($0.state) }
        let count = sums.lazy.map(\.count).clampedSum
        if count == 0 { continue }
        text += "  \(name): \(Quantity.plural(Int(clamping: count), "file")), "
        text += "\(Quantity.text(bytes: sums.lazy.map(\.bytes).clampedSum))\n"
        if name != "failed" { continue }
        for failure in place.failures {
          text += "    \(failure.id)  \(shown(failure.path))\n        \(shown(failure.message))\n"
        }
        if count > place.failures.count {
          let more = Quantity.grouped(Int(clamping: count) - place.failures.count)
          text += "    and \(more) more: 'fullbore status --all'\n"
        }
      }
    }
    for (push, endpoint) in unlisted {
      let end =
        push.isRunning
        ? "does not know all its files yet" : "ended before all its files were known: run it again there"
      text += "a push of \(push.sources) to \(shown(endpoint)) on \(push.machine) \(end)\n"
    }
    for (machine, count) in bound {
      text += "\(Quantity.plural(Int(clamping: count), "file")) can be read on \(machine) only\n"
    }
    return text
  }

  func json(_ only: JournalStatus.Standing?) -> String {
    var text = ""
    for place in places {
      for (states, name) in Self.states where only == nil || name == "failed" {
        let sums = place.sums.filter { states.contains($0.state) }
        let count = sums.lazy.map(\.count).clampedSum
        if count == 0 { continue }
        var line = JSONLine("destination")
        line.add("endpoint", place.destination.endpoint)
        line.add("protocol", place.destination.protocolName)
        line.add("state", name)
        line.add("files", count)
        line.add("bytes", sums.lazy.map(\.bytes).clampedSum)
        line.add("acknowledged", sums.lazy.map(\.acknowledged).clampedSum)
        text += line.text + "\n"
      }
    }
    for place in places {
      for failure in place.failures {
        var line = JSONLine("file")
        line.add("id", failure.id)
        line.add("state", "failed")
        line.add(path: failure.path)
        line.add("source", failure.source.description)
        line.add("endpoint", place.destination.endpoint)
        line.add("message", failure.message)
        text += line.text + "\n"
      }
    }
    for (push, endpoint) in unlisted {
      var line = JSONLine(push.isRunning ? "reading" : "unread")
      line.add("endpoint", endpoint)
      line.add("source", push.sources)
      line.add("machine", push.machine)
      text += line.text + "\n"
    }
    return text
  }
}
