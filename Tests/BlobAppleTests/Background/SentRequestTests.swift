import BlobHTTP
import Testing

@testable import BlobApple

/// Background sessions follow redirects without asking, and the response of another page is none to an upload.
struct SentRequestTests {
  private let upload = SentRequest("POST", "https://nas.example/inbox/a%20b.mov")

  private func problem(
    _ method: String?, _ url: String?, _ headers: HTTPHeaders = [:], mayResume: Bool = false
  ) -> TransportError? {
    upload.problem(
      answeredAs: SentRequest(method, url), HTTPHead(status: 200, headers: headers), mayResume: mayResume)
  }

  @Test func theResponseToTheRequestItselfCounts() {
    #expect(problem("POST", "https://nas.example/inbox/a%20b.mov") == nil)
    #expect(problem("POST", "https://NAS.example:443/inbox/a%20b.mov") == nil)
    #expect(problem(nil, nil) == nil)
  }

  @Test(arguments: [
    ("GET", "https://nas.example/login"), ("GET", "https://nas.example/inbox/a%20b.mov"),
    ("POST", "https://nas.example/inbox/a%20b.mov/"), ("POST", "http://nas.example/inbox/a%20b.mov"),
    ("POST", "https://evil.example/inbox/a%20b.mov"),
  ])
  func theResponseToAnotherRequestIsAnError(_ method: String, _ url: String) {
    let error = problem(method, url)
    #expect(error?.code == .badResponse)
    #expect(error?.message.contains("POST https://nas.example/inbox/a%20b.mov") == true)
    #expect(error?.message.contains("\(method) \(url)") == true)
  }

  /// The system resumes a creation by itself, and then the URL of the upload answers.
  @Test func aCreationThatTheSystemHasResumedCounts() {
    let (url, headers) = ("https://nas.example/.fullbore-upload/6f", ["Upload-Complete": "?1"] as HTTPHeaders)
    #expect(problem("PATCH", url, headers, mayResume: true) == nil)
    #expect(problem("PATCH", url, headers) != nil)
    #expect(problem("GET", url, mayResume: true) != nil)
    #expect(problem("PATCH", "https://evil.example/6f", headers, mayResume: true) != nil)
  }
}
