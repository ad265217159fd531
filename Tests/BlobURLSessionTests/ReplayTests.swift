import BlobHTTP
import BlobStreams
import BlobTesting
import TestSupport
import BlobURLSession
import Blobs
import Foundation
import Testing

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The whole body is sent again if the server requires it.
@Suite(.timeLimit(.minutes(1)))
struct ReplayTests {
  private let pattern = PatternSource(length: 5_000_001)

  @Test(arguments: [307, 308])
  func redirectSendsTheWholeBodyAgain(status: Int) async throws {
    let peer = ScriptedPeer([.readRequest, .send(redirect(status, "/new")), .close], [.readRequest, .send(answerOK)])
    let told = Told()
    var upload = StreamedUpload(pattern)
    upload.progress = { sent, length in if sent == length { told.add(sent) } }
    let answer = try await upload.send(foundationPut(to: peer.port))
    #expect(answer.status == 200)
    let seen = peer.seen
    #expect(seen.heads.map { $0.prefix { $0 != "\r\n" } } == ["PUT /x HTTP/1.1", "PUT /new HTTP/1.1"])
    for number in 0...1 {
      #expect(seen.values("Content-Length", inHead: number) == ["5000001"])
      #expect(Array(seen.body(ofConnection: number)) == pattern.bytes(count: 5_000_001))
    }
    #expect(told.all == [5_000_001, 5_000_001], "once for each sending")
  }

  @Test func redirectElsewhereTakesNoSecretsAlong() async throws {
    let other = ScriptedPeer([.readRequest, .send(unauthorized), .close])
    let peer = ScriptedPeer([.readRequest, .send(redirect(307, "http://127.0.0.1:\(other.port)/new")), .close])
    var upload = StreamedUpload(pattern)
    upload.authorization = { _ in "Bearer secret" }
    var request = foundationPut(to: peer.port)
    request.setValue("Bearer secret", forHTTPHeaderField: "Authorization")
    request.setValue("id=secret", forHTTPHeaderField: "Cookie")
    let answer = try await upload.send(request)
    #expect(answer.status == 401 && other.seen.heads.count == 1)
    #expect(peer.seen.values("Authorization") == ["Bearer secret"])
    #expect(other.seen.heads.allSatisfy { !$0.contains("secret") })
  }

  @Test func redirectsEndSomewhere() async throws {
    let peer = ScriptedPeer([.readRequest, .send(redirect(307, "/x")), .close])
    let answer = try await StreamedUpload(PatternSource(length: 1000)).send(foundationPut(to: peer.port))
    #expect(answer.status == 307 && peer.seen.heads.count == 6)
  }

  @Test func challengeSendsTheWholeBodyAgainWithCredentials() async throws {
    let peer = ScriptedPeer([.readRequest, .send(unauthorized), .close], [.readRequest, .send(answerOK), .close])
    var upload = StreamedUpload(pattern)
    upload.authorization = { $0.headers["WWW-Authenticate"]?.contains("Basic") == true ? "Basic dTpw" : nil }
    let answer = try await upload.send(foundationPut(to: peer.port))
    #expect(answer.status == 200)
    let seen = peer.seen
    #expect(seen.values("Authorization", inHead: 0) == [] && seen.values("Authorization", inHead: 1) == ["Basic dTpw"])
    #expect(Array(seen.body(ofConnection: 1)) == pattern.bytes(count: 5_000_001))
  }

  @Test func credentialsAreAskedForOnce() async throws {
    let peer = ScriptedPeer([.readRequest, .send(unauthorized), .close])
    var upload = StreamedUpload(PatternSource(length: 1000))
    upload.authorization = { _ in "Basic dTpw" }
    let answer = try await upload.send(foundationPut(to: peer.port))
    #expect(answer.status == 401 && peer.seen.heads.count == 2)
  }

  @Test func sequentialSourceThatIsSpentIsAnError() async throws {
    let peer = ScriptedPeer([.readRequest, .send(redirect(307, "/new")), .close], [.readRequest, .send(answerOK)])
    let source = StreamSource(InputStream(data: Data(count: 200_000)), length: 200_000)
    let error = await #expect(throws: TransportError.self) { () async throws in
      _ = try await StreamedUpload(source).send(foundationPut(to: peer.port))
    }
    #expect(error?.code == .source && error?.cause?.code == .outOfRange)
  }

  private func redirect(_ status: Int, _ place: String) -> String {
    "HTTP/1.1 \(status) Elsewhere\r\nLocation: \(place)\r\nContent-Length: 0\r\n\r\n"
  }

  private let unauthorized =
    "HTTP/1.1 401 Who\r\nWWW-Authenticate: Basic realm=\"films\"\r\nContent-Length: 0\r\n\r\n"
}
