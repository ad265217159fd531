/// The work that a server does by itself: it removes what has expired, and checks its folder.
struct Upkeep: Sendable {
  let health = FolderHealth()
  private let tidying = PeriodicTask()
  private let watching = PeriodicTask()

  func start(_ service: Service) {
    let options = service.options
    let interval = min(.seconds(60), max(.milliseconds(50), options.expire / 4))
    tidying.start(every: interval) { [workers = service.workers, uploads = service.uploads] in
      workers.submit { uploads.tidy() }
    }
    let look = { @Sendable [store = service.store, health] in
      for line in store.lookAgain() { options.notice?(line) }
      let finding = FolderHealth.Finding(
        problem: store.problem, free: store.free, refusingLimit: store.takeRefusal() ? options.maxTotal : nil,
        // A store in the network is not asked each second: it never has these names.
        published: store.abilities.waitsForNetwork ? [] : store.monitoringNames)
      let full = health.note(finding)
      if let full, !options.isReadOnly { options.notice?(full) }
    }
    look()
    watching.start(every: .seconds(1), look)
  }

  /// Blocks until the threads have ended.
  func stop() {
    tidying.stop()
    watching.stop()
  }
}
