import BlobQueue
import BlobUpload
import Blobs

// One claimer of a shared queue, for Benchmarks/queue.py: it claims items in batches and ends them, as a process does whose uploads
// take no time. `QueueBenchmark URL add` adds one item and prints its destination; `QueueBenchmark URL DESTINATION SECONDS`
// prints how many items it has ended, and in how many seconds.

let usage = "usage: QueueBenchmark URL add|DESTINATION [SECONDS]"
let arguments = CommandLine.arguments
guard arguments.count >= 3 else { fatalError(usage) }
let queue = try SharedQueue(arguments[1], on: "benchmark")
if arguments[2] == "add" {
  let endpoint = "http://127.0.0.1/\(UInt64.random(in: 0 ... .max))/"
  let destination = try queue.destinationID(JournalDestination(endpoint: endpoint, protocolName: "tus"))
  let push = try queue.beginPush("/benchmark", to: destination, by: "benchmark")
  let intent = JournalIntent(
    source: "/nas/2026/DCIM/100CANON/IMG_0001.CR3", target: endpoint + "DCIM/100CANON/IMG_0001.CR3",
    path: "DCIM/100CANON/IMG_0001.CR3", length: 25_000,
    validator: Validator(version: "25000-1767225600000000000", instance: "64769-1234567-1767225600000000000"))
  _ = try queue.add([intent], push: push, to: destination)
  try queue.endListing(of: push)
  print(destination)
} else {
  guard let destination = Int64(arguments[2]), let seconds = Int(arguments[3]) else { fatalError(usage) }
  let worker = try QueueWorker(queue, pid: 0)
  let began = ContinuousClock.now
  var ended = 0
  while ContinuousClock.now - began < .seconds(seconds) {
    let items = try worker.claim(at: destination)
    if items.isEmpty { break }
    // The copies of one item have the same record, so its number serves as the number of its entry.
    worker.hold(items.map { (entry: $0.id, item: $0) })
    try worker.store(items.map { MirroredUpload(id: $0.id, upload: $0.upload, state: .done) })
    ended += items.count
    _ = worker.takeEnded()
  }
  let elapsed = ContinuousClock.now - began
  print(ended, Double(elapsed.components.seconds) + Double(elapsed.components.attoseconds) / 1e18)
  worker.close()
}
