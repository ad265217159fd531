import BlobHTTP
import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// Random photos, edits, deletions and results of jobs, with an extension that is killed before or after any call.
struct PhotoUploadsChaosTests {
  private static let destination = PhotoJobDestination(HTTPURL("https://nas.example/")!)

  @Test(arguments: 1...40, [true, false]) func everyVersionArrivesOnceOrIsGivenUp(seed: Int, lists: Bool) async throws {
    var world = try await World(seed: UInt64(seed), lists: lists)
    for _ in 0..<60 {
      try await world.change()
      try await world.run(kill: true)
    }
    try await world.finish()
    try await world.check()
  }

  private struct World {
    let scratch = try! ScratchFolder()
    var random: SplitMix64
    let system: FakePhotoSystem
    let journal: Journal
    var time: Int64 = 1000
    var added = 0
    var kills = 0
    var unnoticed: [String: Int] = [:]

    init(seed: UInt64, lists: Bool) async throws {
      random = SplitMix64(seed: seed)
      system = FakePhotoSystem(limit: Int.random(in: 1...6, using: &random), listsJobsUnderWay: lists)
      journal = try await Journal(at: scratch.path.appending("journal"))
    }

    mutating func change() async throws {
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        let count = system.state.withLock { $0.assets.count }
        switch Int.random(in: 0...9, using: &random) {
        case 0, 1:
          added += 1
          var resources = [AssetResource(kind: .photo, filename: "IMG_\(added % 3).HEIC")]
          if Bool.random(using: &random) {
            resources.append(AssetResource(kind: .pairedVideo, filename: "IMG_\(added % 3).MOV"))
          }
          system.add("\(added)/L0/001", resources)
        case 2 where count > 0: system.edit(Int.random(in: 0..<count, using: &random))
        case 3 where count > 0:
          let index = Int.random(in: 0..<count, using: &random)
          system.state.withLock { _ = $0.assets.remove(at: index) }
        default:
          guard let id = system.underWay.randomElement(using: &random) else { continue }
          switch Int.random(in: 0...5, using: &random) {
          case 0...2: system.succeed(id)
          case 3, 4: system.fail(id)
          default: try await lose(id)
          }
        }
      }
    }

    /// The extension was killed after it had made the job and before it could note that: it cannot know that there was one.
    private mutating func lose(_ id: String) async throws {
      guard let job = system.state.withLock({ $0.jobs[id] }) else { return }
      if try await journal.jobs.job(at: job.url)?.state == .registering {
        unnoticed["\(job.url) \(job.version)", default: 0] += 1
      }
      system.lose(id)
    }

    @discardableResult
    mutating func run(kill: Bool) async throws -> PhotoUploads.Outcome {
      let isKilled = kill && Int.random(in: 0...2, using: &random) > 0
      system.kills.start(endingAfter: isKilled ? Int.random(in: 0...60, using: &random) : nil)
      let uploads = PhotoUploads(
        to: destination, ledger: KilledLedger(journal: journal, kills: system.kills), over: system,
        patience: .seconds(100)
      ) { [time] in time }
      let outcome = await uploads.run()
      if system.kills.isKilled { kills += 1 }
      return outcome
    }

    /// The system sends all that is under way, and nothing else happens.
    mutating func finish() async throws {
      for _ in 0..<500 {
        system.underWay.forEach(system.succeed)
        if try await run(kill: false) == .completed { return }
        // Jobs that are not listed are waited for, and photos that have failed are tried again within a day.
        if system.underWay.isEmpty { time += 100_000 }
      }
      Issue.record("the extension does not come to an end")
    }

    func check() async throws {
      let state = system.state.withLock { $0 }
      #expect(state.jobs.isEmpty)
      #expect(state.mostJobs <= system.limit)
      if system.listsJobsUnderWay { #expect(state.refusals == 0) }
      #expect(state.acknowledged.values.allSatisfy { $0 == 1 })
      for (version, count) in state.asked {
        #expect(count <= 28 + unnoticed[version, default: 0], "\(version) was tried \(count) times")
      }
      for (version, count) in state.sent { #expect(count == 1, "\(version) was sent \(count) times") }
      for (asset, resources) in state.assets {
        for item in AssetPlan().items(of: resources) {
          let url = destination.urls(asset, item.name)[0].text
          let job = try #require(try await journal.jobs.job(at: url))
          let version = "\(url) \(asset.version)"
          #expect(job.isSettled(asset.version))
          if job.state == .refused {
            #expect(state.failures[version] ?? 0 >= 2, "\(version) had its retry")
            #expect(state.sent[version] == nil)
            #expect(job.error != nil)
          } else {
            #expect(state.sent[version] == 1)
          }
        }
      }
      #expect(try await journal.jobs.open().isEmpty)
      #expect(kills > 0)
    }
  }
}
