// Measures BlobInputStream: a line of JSON for each number and its goal. StreamBenchmark FILE [ROUNDS]
import Foundation

let arguments = CommandLine.arguments
guard arguments.count >= 2 else {
  print("usage: StreamBenchmark FILE [ROUNDS]")
  exit(2)
}
let rounds = arguments.count > 2 ? Int(arguments[2]) ?? 5 : 5

for size in [64 << 10, 1 << 20] {
  let ratio = try Reads.ratioToPread(arguments[1], upTo: size, rounds: rounds)
  Goal("reads of \(size >> 10) KiB from a file: throughput a CPU second, of a pread loop's", ratio, .atLeast, 0.9).say()
}
Goal(
  "1-byte reads over a caching source, a CPU second", Reads.singleBytes(rounds: rounds) / 1e6, .atLeast, 20, "million/s"
).say()

let methods = Waits.methodsWhileOpening(for: .seconds(2))
Goal("asynchronous methods while the source takes 2 s to open: p99", methods.p99, .atMost, 1, "ms").say()
Goal("the same: the slowest of \(methods.count)", methods.longest, .atMost, 50, "ms").say()
let crowd = Waits.crowd(of: 1000, openingIn: .seconds(2))
Goal("1,000 such streams at once: open(), p99", crowd.opens.p99, .atMost, 1, "ms").say()
Goal("the same: the slowest", crowd.opens.longest, .atMost, 50, "ms").say()
Goal("the same: threads", Double(crowd.threads), .atMost, 64, "threads").say()
let latency = Waits.readyToEvent(count: 5000)
Goal("source ready to delegate's event: p99", latency.p99, .atMost, 1, "ms").say()
Goal("the same: median", latency.median, .atMost, 1, "ms").say()

for asynchronous in [false, true] {
  let mode = asynchronous ? "asynchronous" : "synchronous"
  let tally = Events.deliver(100_000, asynchronous: asynchronous)
  Goal("100,000 events in two loops, \(mode): lost", Double(tally.lost), .atMost, 0, "events").say()
  Goal("the same: in a wrong mode or on a wrong thread", Double(tally.astray), .atMost, 0, "events").say()
}

for chunk in [64 << 10, 256 << 10] {
  let run = Pairs.pass(10_000_000_000, through: 1 << 20, chunk: chunk)
  Goal("10 GB through a bound pair of 1 MiB, \(chunk >> 10) KiB at a time", run.gigabytesPerSecond, .atLeast, 2, "GB/s")
    .say()
  Goal("the same: memory, grown since its first GB", Double(run.grown) / 1048576, .atMost, 1, "MiB").say()
}

Goal(
  "a source as slow as its link, each in turn: time of the link's alone", try Ahead.share(capacity: nil), .atLeast, 1.5
).say()
Goal("the same, read ahead", try Ahead.share(capacity: 1 << 20), .atMost, 1.05).say()
// As uploads of databases do.
Goal(
  "the same, read ahead once it is found slow",
  try Ahead.share(capacity: 256 << 10, ifSlowerThan: 250_000_000), .atMost, 1.05
).say()
