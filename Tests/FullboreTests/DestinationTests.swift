import Blobs
import Testing

@testable import fullbore

@Suite struct DestinationTests {
  @Test func aSlashAtTheEndMeansInto() throws {
    #expect(try Destination("http://host/a/").isFolder)
    #expect(try !Destination("http://host/a").isFolder)
    #expect(try Destination("http://host").isFolder)
    #expect(try Destination("http://host/a/?key=b").isFolder)
  }

  @Test func theProtocolMayBeNamed() throws {
    #expect(try Destination("http://host/").protocolName == nil)
    let put = try Destination("put+https://host:444/x")
    #expect(put.protocolName == "put")
    #expect(put.endpoint.text == "https://host:444/x")
    #expect(try Destination("TUS+HTTP://host/").protocolName == "tus")
    #expect(try Destination("dav+http://host/").protocolName == "dav")
    #expect(try Destination("form+http://host/upload").isFolder, "the file says its own name")
  }

  #if os(Linux)
    /// Credentials go by the name that the name system and certificates have.
    @Test(arguments: [
      ("https://bücher.example/a/", "https://xn--bcher-kva.example/a/"),
      ("https://BÜCHER.example:443/ä?b", "https://xn--bcher-kva.example/%C3%A4?b"),
      ("put+http://bu\u{308}cher.example:81/", "http://xn--bcher-kva.example:81/"),
      ("http://b%C3%BCcher.example/", "http://xn--bcher-kva.example/"), ("http://faß.de/", "http://xn--fa-hia.de/"),
    ])
    func aNameWithLettersBeyondASCIIIsWrittenInASCII(_ given: String, _ url: String) throws {
      #expect(try Destination(BytePath(given)).endpoint.text == url)
      if !given.hasPrefix("put+") {
        #expect(try URLSource(BytePath(given.replacing("ä", with: "%C3%A4")))?.url.text == url)
      }
    }

    /// The fullwidth slash is a slash in ASCII, and another host would be asked.
    @Test(arguments: ["http://ex／ample.ü/", "http://a＠ü.de/", "http://-ü.de/"])
    func aNameThatIsNoneIsRefused(_ given: String) {
      #expect { try Destination(BytePath(given)) } throws: { "\($0)".contains("xn--") }
    }
  #endif

  @Test func aBucketOfGooglesMayBeNamed() throws {
    let bucket = try Destination("gs://media/März 24/")
    #expect(bucket.protocolName == "gcs" && bucket.isFolder)
    #expect(bucket.endpoint.text == "https://storage.googleapis.com/media/M%C3%A4rz%2024/")
    #expect(try Destination("gs://media").endpoint.text == "https://storage.googleapis.com/media/")
    #expect(try Destination("gcs+http://127.0.0.1:9023/media/").endpoint.text == "http://127.0.0.1:9023/media/")
  }

  /// Dots in a name are names all the same, and of S3 every byte means itself.
  @Test func aNameMayBeginWithDots() throws {
    #expect(try Destination("gs://media/..a/.b./").endpoint.path == "/media/..a/.b./")
    #expect(try Destination.s3(Array("media/%2e%2e/a?b".utf8)[...], "").prefix == Array("%2e%2e/a?b".utf8))
  }

  @Test func aQueryMayGoWithTheURLItIsFor() throws {
    for text in [
      "put+http://host/a.jpg?a=b", "resumable+http://host/a.jpg?a=b", "form+http://host/?a=b", "tus+http://host/p/?a=b",
      "http://host/p/?a=b",
    ] { #expect(try Destination(BytePath(text)).endpoint.query == "a=b", "\(text)") }
  }

  @Test func anAddressMayBeIPv6() throws {
    #expect(try Destination("put+http://[::1]:8080/a/").endpoint.origin == "http://[::1]:8080")
  }

  @Test func namesMayBeTypedAsTheyAre() throws {
    #expect(try Destination("http://host/März 24/").endpoint.path == "/M%C3%A4rz%2024/")
    #expect(try Destination("http://host/M%C3%A4rz/").endpoint.path == "/M%C3%A4rz/")
    #expect(try Destination(BytePath(Array("http://host/".utf8) + [0xFF])).endpoint.path == "/%FF")
  }

  @Test(arguments: [
    ("host/path", "no scheme"), ("", "no scheme"), ("ftp://host/", "'ftp'"), ("s3:///a", "bucket's name"),
    ("s3://a_/b c@d", "bucket's name"), ("gs:///a", "bucket's name"), ("gs://../media", "bucket's name"),
    ("gs://user:secret@media/", "--token-file"),
    ("s3://key:secret@bucket/", "do not belong"), ("put+s3://bucket/", "'s3'"),
    ("gopher+http://host/", "'gopher'"), ("http://", "no URL"),
    ("http:///path", "no URL"), ("http://host:x/", "no URL"), ("http://user:secret@host/", "--token-file"),
    ("user:secret@host/", "no scheme"), ("http:/u:secret@host/", "two slashes"), ("http://host/a#secret", "%23"),
    ("http://host/a#b", "%23"),
    ("http://[fe80::1%25eth0]/", "zone"), ("http://[fe80::1%eth0]:80/", "zone"), ("http://u:se/secret@host/", "no URL"),
    ("dav+http://user:secret@host/", "--token-file"),
    ("gs://media/../other", "'..' for a folder"), ("gs://media/a/%2e%2E/b", "'..' for a folder"),
    ("gs://media/./a", "'.' or"), ("gcs+http://host/media/../other", "'..' for a folder"),
    ("s3://media/../other", "'..' for a folder"), ("gs:media/a", "two slashes"), ("media/a", "gs://"),
    ("gs://media/a?b=secret", "%3F"), ("gs://media/a?", "%3F"), ("gcs+http://host/media/?b=secret", "%3F"),
    ("put+http://host/p/?a=secret", "have URLs of their own"), ("put+http://host?a=secret", "have URLs of their own"),
    ("resumable+http://host/p/?a=secret", "have URLs of their own"),
    ("dav+http://host/a.jpg?a=secret", "not carry the query"),
  ])
  func anInvalidDestinationIsRefusedWithAReason(_ text: String, _ words: String) {
    let refusal = usageError { () throws(UsageError) in _ = try Destination(BytePath(text)) }
    #expect(refusal?.contains(words) == true, "\(refusal ?? "taken")")
    #expect(refusal?.contains("secret") == false)
  }
}
