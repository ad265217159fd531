import BlobClient
import BlobHTTP
import BlobUpload
import Blobs

/// Asks the server of a place what it speaks and whether it takes the credentials. No file is sent.
struct PlaceTest: Sendable {
  enum Answer: Sendable {
    /// The text continues "URL answers".
    case speaks(String)
    case wantsCredentials(String)
    case failed(String, ExitStatus)
  }

  private let place: Place

  init(_ place: Place) { self.place = place }

  func run() async -> Answer {
    do throws(UploadError) {
      let (connection, destination) = try options()
      let transport = SocketTransport(try connection.transportOptions(connections: 1))
      if let address = destination.address {
        let kept = JournalDestination(
          endpoint: destination.endpoint.text, protocolName: "s3",
          s3: S3Location(address, profile: connection.s3.profile))
        _ = try await Reached(kept, connection, over: transport)
        return .speaks(", and the bucket is there")
      }
      let reached = try await Reached(destination, connection, checksum: nil, over: transport)
      if let refusal = try await refusal(at: destination.endpoint, connection, transport) { return refusal }
      let name = reached.destination.uploadProtocol.name
      return .speaks(destination.protocolName == nil ? ", and speaks \(name)" : "")
    } catch {
      if error.status == 401 { return .wantsCredentials(error.message) }
      return .failed(error.advised, ExitStatus(error, PushCounters()))
    }
  }

  private func options() throws(UploadError) -> (ConnectionOptions, Destination) {
    do throws(UsageError) {
      let connection = try ConnectionOptions(place)
      return (connection, try Destination(try place.destination(of: ""), connection.s3))
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
  }

  /// A server may tell everyone what it speaks, and want credentials for everything else. nil: it does not refuse.
  private func refusal(
    at endpoint: HTTPURL, _ connection: ConnectionOptions, _ transport: SocketTransport
  ) async throws(UploadError) -> Answer? {
    var request = HTTPRequest("HEAD", endpoint)
    request.headers = try await connection.fields(for: endpoint)
    let response: HTTPResponse
    do {
      response = try await transport.send(request, body: nil, Exchange())
    } catch {
      throw await connection.explained(
        UploadError(.giveUp, .destination, "HEAD \(endpoint): \(error.message)", cause: error), at: endpoint)
    }
    switch response.status {
    case 401: return .wantsCredentials("HEAD \(endpoint): 401: the server wants credentials, or other ones")
    case 403: return .failed("HEAD \(endpoint): 403: the server does not let these credentials in here", .unreachable)
    case 407: return .failed("HEAD \(endpoint): 407: the proxy wants credentials: --proxy @FILE", .unreachable)
    default: return nil
    }
  }
}
