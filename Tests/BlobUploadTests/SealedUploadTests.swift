import BlobClient
import BlobHTTP
import BlobTesting
import Blobs
import Platform
import TestSupport
import Testing

@testable import BlobCrypto
@testable import BlobUpload

/// Sealed uploads that are cut and go on in another run, over every protocol.
@Suite(.serialized) struct SealedUploadTests {
  private static let identity = try! SealIdentity(
    "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX")
  private static let sealing = try! Sealing(
    for: [SealRecipient("age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj")])
  private static let pattern = PatternSource(length: 3 << 20, seed: 1)
  private static let threads = BlockingPool("sealed-uploads", threads: 4)

  /// A server, and runs that each open the journal anew.
  private struct Bench {
    let fixture: ProtocolFixture
    let peer: any ProtocolPeer
    let folder: ScratchFolder
    let limits: PartLimits
    let transport = SocketTransport(.init(connections: 4, noProgress: .seconds(10), finishing: .seconds(10)))

    init(_ fixture: ProtocolFixture) async throws {
      self.fixture = fixture
      folder = try ScratchFolder()
      let peer = try await SealedUploadTests.threads.run { () throws in try fixture.makePeer() }
      self.peer = peer
      limits = try await fixture.uploadProtocol.discover(
        UploadTarget(endpoint: peer.endpoint, url: peer.endpoint, path: "", length: nil),
        UploadContext(transport: transport, endpoint: peer.endpoint, traits: fixture.uploadProtocol.traits)
      ).limits
    }

    /// Returns the error of the upload; nil: the server has the file.
    func run(_ source: any BlobSource, over transport: (any Transport)? = nil) async throws -> UploadError? {
      let journal = try await Journal(at: folder.path.appending("journal"))
      var destination = UploadDestination(
        endpoint: peer.endpoint, uploadProtocol: fixture.uploadProtocol, limits: limits)
      destination.sealing = SealedUploadTests.sealing
      var uploader = Uploader(
        destination, transport: transport ?? self.transport, journal: journal,
        retry: RetryPolicy(retries: 3, first: .milliseconds(1), longest: .milliseconds(10)), partSize: fixture.partSize)
      uploader.partsAtOnce = fixture.partsAtOnce
      (uploader.splitting.leastLength, uploader.splitting.smallestPart) = (100_000, 60_000)
      let queue = UploadQueue(
        uploader, journal: journal, destinationID: try await journal.destinationID(of: destination))
      let sealed = SealedUpload(source, SealedUploadTests.sealing)
      let info = sealed.sealed(try source.info(Cancellation()))
      var item = UploadItem(
        source: sealed, info: info, identity: "/card/video",
        target: destination.target("video.age", length: info.length))
      item.sealed = sealed
      var failure: UploadError?
      do throws(UploadError) { _ = try await queue.upload(item, nil) } catch { failure = error }
      await journal.close()
      return failure
    }

    /// The seal of the unfinished upload in the journal.
    func seal() async throws -> FileSeal? {
      let journal = try await Journal(at: folder.path.appending("journal"))
      let entry = try await journal.unfinished().first { !$0.isLeftover }
      var box: String?
      if let entry { box = try await journal.seals.box(of: entry.id) }
      let key = try await journal.seals.knownKey()
      await journal.close()
      guard let box = box.flatMap({ Base64.decode($0) }), let key else { return nil }
      return FileSeal(unboxing: box, under: key)
    }

    func arrived() async -> [UInt8]? {
      await SealedUploadTests.threads.run { [peer] in peer.contents(of: "video.age") }
    }

    /// Expects that the file at the server opens and is `pattern`. Returns what stands before its chunks.
    func expectOpens(as pattern: PatternSource) async throws -> [UInt8] {
      let sealed = try #require(await arrived(), "nothing arrived")
      let source = UnsealedSource(DataSource(sealed), with: [SealedUploadTests.identity])
      let wrong: Int64? = try await SealedUploadTests.threads.run { () throws(BlobError) in
        let reader = try source.open(at: 0, Cancellation())
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        var offset: Int64 = 0
        while case let count = try reader.read(into: buffer), count > 0 {
          let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<count])
          if pattern.verify(bytes, at: offset) != nil { return offset }
          offset += Int64(count)
        }
        return offset == pattern.length ? nil : offset
      }
      #expect(wrong == nil)
      return Array(sealed.prefix(sealed.count - Int(FileSeal.chunks(sealing: pattern.length) ?? 0)))
    }

    func stop() async { await SealedUploadTests.threads.run { [peer] in peer.stop() } }
  }

  private static let cut = BlobError(.io, "the card was pulled out")

  @Test(arguments: ProtocolFixture.all) func anInterruptedSealedUploadContinuesWithItsKey(_ fixture: ProtocolFixture)
    async throws
  {
    let bench = try await Bench(fixture)
    let error = try await bench.run(FaultySource(Self.pattern, .fail(at: 2 << 20, Self.cut)))
    #expect(error?.side == .source, "\(error as Any)")
    let seal = try await bench.seal()
    // WebDAV has a session, and its bytes are sent anew.
    if fixture.resumes { #expect(seal != nil) }
    #expect(try await bench.run(Self.pattern) == nil)
    let prefix = try await bench.expectOpens(as: Self.pattern)
    if let seal { #expect(prefix == seal.prefix, "the bytes from before are part of the file") }
    await bench.stop()
  }

  @Test(arguments: ProtocolFixture.all)
  func aChangedSourceGetsANewKeyAndANewUpload(_ fixture: ProtocolFixture) async throws {
    let bench = try await Bench(fixture)
    #expect(try await bench.run(FaultySource(Self.pattern, .fail(at: 2 << 20, Self.cut))) != nil)
    let seal = try await bench.seal()
    let other = PatternSource(length: 3 << 20, seed: 2)
    #expect(try await bench.run(other) == nil)
    let prefix = try await bench.expectOpens(as: other)
    #expect(prefix != seal?.prefix)
    await bench.stop()
  }

  /// The process is ended after the server has got the whole file in one request, and before it has the answer.
  @Test(arguments: ["put", "s3", "tus", "resumable", "dav"])
  func theNextRunFindsASealedFileThatWasStored(_ name: String) async throws {
    let bench = try await Bench(try #require(ProtocolFixture.all.first { $0.name == name }))
    let source = PatternSource(length: 50_000, seed: 1)
    let isSent = Monitor(false)
    let transport = FaultyTransport(bench.transport) { _, request in
      isSent.update { isSent in
        if isSent { return .before(.cancelled) }
        isSent = ["PUT", "POST"].contains(request.method)
        return isSent ? .loseAnswer : .none
      }
    }
    #expect(try await bench.run(source, over: transport)?.side == .cancelled)
    #expect(try await bench.seal() != nil)
    let arrived = await bench.arrived()
    #expect(try await bench.run(source) == nil)
    _ = try await bench.expectOpens(as: source)
    if let arrived { #expect(await bench.arrived() == arrived, "the file of the first run stays") }
    #expect(try await bench.seal() == nil, "the key is forgotten")
    await bench.stop()
  }

  /// Files of a card that was plugged in again: only a comparison can tell whether they are the same. `change`: the byte
  /// that differs; nil: none.
  @Test(arguments: ["tus", "resumable", "s3"], [nil, 100, 2 << 20 - 1] as [Int64?])
  func aFileThatMayHaveChangedIsComparedBeforeItContinues(_ name: String, _ change: Int64?) async throws {
    let fixture = try #require(ProtocolFixture.all.first { $0.name == name })
    let bench = try await Bench(fixture)
    let first = CardFile(plug: 1)
    #expect(try await bench.run(FaultySource(first, .fail(at: 2 << 20, Self.cut))) != nil)
    let seal = try #require(try await bench.seal())
    let again = CardFile(plug: 2, changedAt: change)
    #expect(try await bench.run(again) == nil)
    let sealed = try #require(await bench.arrived())
    let goesOn = sealed.starts(with: seal.prefix)
    if change != nil { #expect(!goesOn) } else if name != "s3" { #expect(goesOn) }
    let source = UnsealedSource(DataSource(sealed), with: [Self.identity])
    let plain = try await Self.threads.run { () throws(BlobError) in try Self.bytes(source) }
    #expect(plain == again.bytes)
    await bench.stop()
  }

  @Test(arguments: ["tus", "s3", "put"]) func nothingOfTheKeyIsLeft(_ name: String) async throws {
    let fixture = try #require(ProtocolFixture.all.first { $0.name == name })
    let bench = try await Bench(fixture)
    #expect(try await bench.run(FaultySource(Self.pattern, .fail(at: 2 << 20, Self.cut))) != nil)
    let seal = try await bench.seal()
    func expectNoKey() throws {
      let names = bench.folder.names(in: "")
      #expect(names.contains("journal"))
      for file in names {
        let bytes = try #require(bench.folder.read(file))
        guard let key = seal?.fileKey else { continue }
        let forms = [key, Array(Base64.encode(key).utf8.prefix(21)), Array(hexDigits(key).utf8)]
        for form in forms { #expect(bytes.firstRange(of: form) == nil, "\(file)") }
      }
    }
    try expectNoKey()
    if fixture.resumes {
      var status = stat()
      #expect(bench.folder.path.appending("journal-seal").status(&status) == 0 && status.st_mode & 0o777 == 0o600)
    }
    #expect(try await bench.run(Self.pattern) == nil)
    #expect(!bench.folder.names(in: "").contains("journal-seal"))
    try expectNoKey()
    // The journal knows that the file is there, and sends nothing.
    let transport = FaultyTransport(bench.transport, [.before(.connect)])
    #expect(try await bench.run(Self.pattern, over: transport) == nil)
    #expect(transport.requests == 0)
    await bench.stop()
  }

  /// A key that others could have read, or that is gone, is not used: the file is sealed anew.
  @Test(arguments: ["gone", "readable", "short"]) func aKeyThatCannotBeTrustedIsNotUsed(_ how: String) async throws {
    let bench = try await Bench(try #require(ProtocolFixture.all.first { $0.name == "tus" }))
    #expect(try await bench.run(FaultySource(Self.pattern, .fail(at: 2 << 20, Self.cut))) != nil)
    let seal = try #require(try await bench.seal())
    bench.folder.path.appending("journal-seal").withCString { path in
      switch how {
      case "gone": _ = unlink(path)
      case "readable": _ = chmod(path, 0o644)
      default: _ = truncate(path, 16)
      }
    }
    #expect(try await bench.run(Self.pattern) == nil)
    #expect(try await bench.expectOpens(as: Self.pattern) != seal.prefix)
    await bench.stop()
  }

  @Test func aPipeHasANewKeyInEachRun() async throws {
    let bench = try await Bench(try #require(ProtocolFixture.all.first { $0.name == "tus" }))
    let pipe = PatternSource(length: 3 << 20, seed: 1, access: .sequential, knowsLength: false)
    #expect(try await bench.run(FaultySource(pipe, .fail(at: 2 << 20, Self.cut))) != nil)
    #expect(try await bench.seal() == nil)
    #expect(try await bench.run(pipe) == nil)
    _ = try await bench.expectOpens(as: Self.pattern)
    await bench.stop()
  }

  private static func bytes(_ source: some BlobSource) throws(BlobError) -> [UInt8] {
    let reader = try source.open(at: 0, Cancellation())
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    var bytes: [UInt8] = []
    while case let count = try reader.read(into: buffer), count > 0 { bytes += buffer.prefix(count) }
    return bytes
  }
}

/// A file whose size and time stay the same, and whose device has another number each time it is plugged in.
private struct CardFile: BlobSource {
  let bytes: [UInt8]
  private let source: DataSource
  private let told: BlobInfo
  var access: BlobAccess { .random }

  init(plug: Int, changedAt change: Int64? = nil) {
    var bytes = PatternSource(length: 3 << 20, seed: 1).bytes(count: 3 << 20)
    if let change { bytes[Int(change)] ^= 1 }
    let validator = Validator(version: "3145728-time", instance: "\(plug)-1")
    (self.bytes, source) = (bytes, DataSource(bytes, validator: validator))
    told = BlobInfo(length: Int64(bytes.count), validator: validator)
  }

  func info(_ cancel: Cancellation) throws(BlobError) -> BlobInfo { told }
  func open(at offset: Int64, _ cancel: Cancellation) throws(BlobError) -> any BlobReader {
    try source.open(at: offset, cancel)
  }
}
