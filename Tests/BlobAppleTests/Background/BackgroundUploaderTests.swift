import BlobTesting
import BlobUpload
import Blobs
import Testing

@testable import BlobApple

/// The protocols of background uploads.
enum BackgroundProtocol: String, CaseIterable, Sendable {
  case tus, resumable
  var uploadProtocol: any UploadProtocol { self == .tus ? Tus() : IETFResumable() }
}

@Suite(.timeLimit(.minutes(2))) struct BackgroundUploaderTests {
  private let source = PatternSource(length: 200_000, seed: 1)

  @Test(arguments: BackgroundProtocol.allCases)
  func aFileArrivesInPiecesThatFitIntoTheSpool(_ uploadProtocol: BackgroundProtocol) async throws {
    let server = try ServedFolder()
    let phone = try Phone(server.endpoint, uploadProtocol.uploadProtocol)
    let app = try await phone.launch()
    try await app.add(source, as: "film.mov")
    let end = await app.end(of: "film.mov")
    guard case .finished = end else {
      Issue.record("\(String(describing: end))")
      return
    }
    #expect(server.has("film.mov", source))
    #expect(phone.daemon.started.map(\.task.length).max() == 16 << 10)
    #expect(phone.daemon.bytes == 200_000)
    #expect(phone.largestSpool > 0 && phone.largestSpool <= 64 << 10)
    #expect(phone.names.isEmpty)
  }
}
