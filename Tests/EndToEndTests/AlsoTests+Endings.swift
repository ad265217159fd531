import BlobTesting
import Foundation
import TestSupport
import Testing

// How one of several destinations ends, and `abort`.
extension EndToEnd.AlsoTests {
  @Test func aFullDestinationStopsNoOther() async throws {
    for number in 0..<30 { try scratch.file("card/\(number).JPG", 100_000, seed: UInt64(number)) }
    let nas = try await ServeProcess.start(in: scratch)
    let cloud = try await ServeProcess.start(in: elsewhere, "--max-total", "250k")
    let push = try push("--jobs", "1", scratch.path("card/"), nas.url, "--also", cloud.url)
    #expect(try await push.wait() == .exited(3), "\(push.output)\(push.errors)")
    Folder(scratch.path("card")).expectSame(as: nas.folder)
    #expect(cloud.folder.files().count == 2)
    let lines = push.errors.split(separator: "\n").filter { $0.contains("507") }
    let areOfCloud = lines.allSatisfy { $0.hasPrefix("fullbore: 127.0.0.1:\(cloud.port): ") }
    #expect(!lines.isEmpty && areOfCloud, "\(push.errors)")
    #expect(push.output.contains("127.0.0.1:\(nas.port): 30 files sent"), "\(push.output)")
    #expect(push.output.contains("127.0.0.1:\(cloud.port): 2 files sent"), "\(push.output)")
    #expect(push.errors.components(separatedBy: "Make room there").count == 2, "\(push.errors)")
  }

  /// Each destination has an upload of its own, which is given up by itself.
  @Test func anUploadIsGivenUpAtOneDestinationOrAtAll() async throws {
    let film = try scratch.file("card/film.mov", 24 << 20)
    let (nas, cloud) = try await servers()
    let push = try push("--bwlimit", "8M", film, "tus+\(nas.url)", "--also", "tus+\(cloud.url)")
    try await until("both have some of the film") {
      nas.folder.unfinished() > 2 << 20 && cloud.folder.unfinished() > 2 << 20 ? true : nil
    }
    push.kill(SIGKILL)
    try await push.wait()
    let first = try await fullbore("abort", "1", in: scratch)
    #expect(first.end == .exited(0), "\(first.command.errors)")
    let (given, kept) = first.command.output.contains(nas.url) ? (nas, cloud) : (cloud, nas)
    #expect(given.folder.unfinished() == 0 && kept.folder.unfinished() > 2 << 20, "\(first.command.output)")
    let rest = try await fullbore("abort", "--all", in: scratch)
    #expect(rest.end == .exited(0) && rest.command.output.contains(kept.url), "\(rest.command.output)")
    #expect(kept.folder.unfinished() == 0)
    #expect(try await fullbore("resume", in: scratch).end == .exited(0))
  }

  /// What `push --also` has left is finished by one `resume`, which says where each file went.
  @Test(arguments: [false, true]) func resumeSaysWhichDestinationItIsAbout(_ isJSON: Bool) async throws {
    let film = try scratch.file("card/film.mov", 24 << 20)
    let (nas, cloud) = try await servers()
    let push = try push("--bwlimit", "8M", film, "tus+\(nas.url)", "--also", "tus+\(cloud.url)")
    try await until("both have some of the film") {
      nas.folder.unfinished() > 2 << 20 && cloud.folder.unfinished() > 2 << 20 ? true : nil
    }
    push.kill(SIGKILL)
    try await push.wait()
    let resume = try Command(Tool.fullbore, ["resume"] + (isJSON ? ["--json"] : []), in: scratch)
    #expect(try await resume.wait() == .exited(0), "\(resume.output)\(resume.errors)")
    if isJSON {
      let (schema, all) = (try EventSchema(), try events(of: resume))
      for event in all { #expect(schema.fault(in: event) == nil, "\(event)") }
      for name in ["start", "done", "destination"] {
        let urls = all.filter { $0["event"] as? String == name }.compactMap { $0["destination"] as? String }
        #expect(urls.sorted() == [nas.url, cloud.url].sorted(), "\(name): \(resume.output)")
      }
    } else {
      for url in [nas.url, cloud.url] { #expect(resume.output.contains("\(url): film.mov"), "\(resume.output)") }
    }
    for server in [nas, cloud] { Folder(scratch.path("card")).expectSame(as: server.folder) }
  }
}
