import BlobStreams
import Blobs
import Foundation

/// Checks of the Swift counterpart of CFReadStream's client.
extension StreamCheck {
  static let clients = [
    StreamCheck("a client hears of the events it asked for", clientHearsWhatItAskedFor),
    StreamCheck("a client that is taken away hears nothing, and the stream goes on", clientIsTakenAway),
    StreamCheck("a client's context is retained once and released once", contextIsBalanced),
    StreamCheck("a context of another version is refused", otherVersionIsRefused),
  ]

  private static func clientHearsWhatItAskedFor(_ exam: StreamCheckContext) throws {
    for asked: Stream.Event in [everything, .openCompleted, [.hasBytesAvailable, .endEncountered]] {
      let heard = Monitor<[Stream.Event]>([])
      var info: UInt8 = 0
      try withUnsafeMutablePointer(to: &info) { info in
        let address = Int(bitPattern: info)
        let (stream, events) = try exam.makeStream()
        let context = StreamClient.Context(info: info)
        let isSet = stream.setClient(
          StreamClient(asked, context: context) { stream, event, info in
            let isOurs = Int(bitPattern: info) == address
            heard.update { $0.append(isOurs ? event : []) }
          })
        try require(isSet, "it was refused")
        stream.open()
        stream.schedule(in: exam.loop, forMode: .default)
        try require(heard.update { $0 }.isEmpty, "it was called outside of the loop")
        try exam.run("events") { events.events.count == 2 }
        exam.runDry()
        let expected = events.events.filter { asked.contains($0) }
        let got = heard.update { $0 }
        try require(got == expected, "heard \(got.map(\.name)) instead of \(expected.map(\.name))")
      }
    }
  }

  private static func clientIsTakenAway(_ exam: StreamCheckContext) throws {
    let calls = Monitor(0)
    let count: StreamClient.Callback = { _, _, _ in calls.update { $0 += 1 } }
    let removals: [StreamClient?] = [
      nil, StreamClient([], count), StreamClient(everything, nil), StreamClient(everything, context: nil, count),
    ]
    for removal in removals {
      let (stream, events) = try exam.makeStream()
      try require(stream.setClient(StreamClient(everything, count)), "it was refused")
      try require(stream.setClient(removal), "its removal was refused")
      stream.schedule(in: exam.loop, forMode: .default)
      stream.open()
      try exam.run("events") { events.events.count == 2 }
      exam.runDry()
      try require(calls.update { $0 } == 0, "it was called after its removal")
      try require([.open, .atEnd].contains(stream.streamStatus), "the stream is \(stream.streamStatus)")
    }
  }

  private static func contextIsBalanced(_ exam: StreamCheckContext) throws {
    let counts = Monitor((retained: 0, released: 0))
    let context = StreamClient.Context(
      retain: { info in
        counts.update { $0.retained += 1 }
        return info
      },
      release: { _ in counts.update { $0.released += 1 } })
    func requireCounts(_ retained: Int, _ released: Int, _ when: String) throws {
      let now = counts.update { $0 }
      try require(now == (retained, released), "\(now.retained) retains, \(now.released) releases \(when)")
    }
    let client = StreamClient(everything, context: context) { _, _, _ in }
    try autoreleased {
      let (stream, events) = try exam.makeStream()
      stream.setClient(client)
      try requireCounts(1, 0, "once it is set")
      stream.setClient(client)
      try requireCounts(2, 1, "once it is replaced")
      stream.setClient(nil)
      try requireCounts(2, 2, "once it is removed")
      stream.setClient(nil)
      stream.setClient(client)
      stream.schedule(in: exam.loop, forMode: .default)
      stream.open()
      try exam.run("events") { events.events.count == 2 }
      stream.close()
      try requireCounts(3, 2, "once the stream is closed")
    }
    try exam.run("the stream's end") { counts.update { $0.released } == 3 }
    try requireCounts(3, 3, "once the stream is gone")
  }

  private static func otherVersionIsRefused(_ exam: StreamCheckContext) throws {
    let (stream, events) = try exam.makeStream()
    let calls = Monitor(0)
    try require(stream.setClient(StreamClient(everything) { _, _, _ in calls.update { $0 += 1 } }), "it was refused")
    let other = StreamClient(everything, context: StreamClient.Context(version: 1)) { _, _, _ in }
    try require(!stream.setClient(other), "a context of version 1 was taken")
    stream.schedule(in: exam.loop, forMode: .default)
    stream.open()
    try exam.run("events") { events.events.count == 2 }
    exam.runDry()
    try require(calls.update { $0 } == 2, "the client before was lost")
  }
}
