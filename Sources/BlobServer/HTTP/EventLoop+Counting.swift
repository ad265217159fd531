// Connections call these functions, which update the counters and report requests to the log.
extension EventLoop {
  func received(_ count: Int) { counters.bytesReceived.add(Int64(count)) }
  func requestBegan() { counters.requests.add(1, ordering: .sequentiallyConsistent) }
  func requestEnded() { counters.requests.subtract(1, ordering: .sequentiallyConsistent) }

  /// Whether somebody wants to know from where requests come.
  var wantsAddresses: Bool { service.options.answered != nil && counters === service.counters }

  func ended(_ notes: RequestNotes, _ request: Request?, sent: Int64) {
    guard let answered = notes.end(request, sent: sent) else { return }
    counters.answered(answered.status, in: answered.duration)
    if wantsAddresses { service.options.answered?(answered) }
  }
}
