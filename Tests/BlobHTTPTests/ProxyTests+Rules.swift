import BlobTesting
import TestSupport
import Blobs
import Testing

@testable import BlobClient
@testable import BlobHTTP

// Limits of time, and which hosts are reached without a proxy.
extension ProxyTests {
  @Test(arguments: ["http", "socks5h"]) func aProxyThatSaysNothingRunsIntoTheLimitForConnecting(_ scheme: String) async
  {
    let proxy = ProxyPeer(to: 1, .silent)
    let place = Proxy("\(scheme)://127.0.0.1:\(proxy.port)")!
    let transport = SocketTransport(.init(connect: .milliseconds(300), proxy: place, environment: [:]))
    let error = await failure { () async throws(TransportError) in
      try await transport.get(HTTPURL("https://media.example/a")!)
    }
    #expect(error.code == .connect, "\(error)")
    #expect(error.message.contains("within 0.3 seconds through the proxy \(place)"), "\(error)")
  }

  @Test func thisMachineIsNeverReachedThroughAProxy() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port)
    let transport = transport("http://127.0.0.1:\(proxy.port)")
    for host in ["127.0.0.1", "localhost"] {
      #expect(try await transport.get(HTTPURL("http://\(host):\(peer.port)/a")!).status == 200)
    }
    #expect(proxy.seen.connections == 0)
  }

  @Test func theEnvironmentIsReadAsCurlDoes() async throws {
    let peer = ScriptedPeer([.readRequest, answer()])
    let proxy = ProxyPeer(to: peer.port)
    let environment = ["http_proxy": "127.0.0.1:\(proxy.port)", "no_proxy": "other.example"]
    let transport = SocketTransport(.init(environment: environment))
    #expect(try await transport.get(HTTPURL("http://media.example/a")!).status == 200)
    #expect(proxy.seen.targets == ["media.example"])
  }
}
