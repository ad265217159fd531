import BlobTesting
import Foundation
import TestSupport
import Testing

// What leads files or secrets of a place elsewhere, and what is lost of its file.
extension EndToEnd.PlacesTests {
  private func keys(_ more: [String: String]) -> [String: String] {
    S3Peer.environment.merging(more) { $1 }
  }

  /// A variable that is left over in a shell, or a profile, is of another program.
  @Test func aPlaceInS3WithoutAnEndpointIsAtAmazons() async throws {
    let other = ScriptedPeer([.discard])
    let url = "http://127.0.0.1:\(other.port)"
    try "X-Secret: \(secret)\n".write(toFile: scratch.path("h"), atomically: true, encoding: .utf8)
    let place =
      "[places.aws]\nurl = \"s3://media/p/\"\nregion = \"eu-central-1\"\nheader = \"@\(scratch.path("h"))\"\n"
    try writeConfiguration(place)
    let file = try scratch.file("a.JPG", 10)
    for variable in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"] {
      let push = try await run("push", file, "aws:", environment: keys([variable: url]))
      #expect(push.end == .exited(2), "\(push.output)\(push.errors)")
      #expect(
        push.errors.contains("$\(variable) says \"\(url)\": write endpoint = \"\(url)\""),
        "\(push.errors)")
    }
    try "[default]\nendpoint_url = \(url)\n[profile mine]\nendpoint_url = \(url)\n".write(
      toFile: scratch.path("aws"), atomically: true, encoding: .utf8)
    let profiles = keys(["AWS_CONFIG_FILE": scratch.path("aws")])
    let push = try await run("push", file, "aws:", environment: profiles)
    #expect(
      push.end == .exited(2) && push.errors.contains("which the place does not name"),
      "\(push.errors)")
    #expect(other.seen.received.isEmpty)
    // The place names that profile, so its server is the place's.
    let named = profiles.merging(["AWS_SHARED_CREDENTIALS_FILE": scratch.path("credentials")]) {
      $1
    }
    try "[mine]\naws_access_key_id = A\naws_secret_access_key = B\n".write(
      toFile: scratch.path("credentials"), atomically: true, encoding: .utf8)
    try writeConfiguration(place + "profile = \"mine\"\n")
    let sent = try await run(
      "push", file, "aws:", "--retries", "0", "--timeout", "1s", environment: named)
    #expect(sent.end == .exited(3) && !other.seen.received.isEmpty, "\(sent.errors)")
  }

  @Test func theEndpointThatWasTestedBecomesThatOfThePlace() async throws {
    let server = S3Peer()
    let url = "http://127.0.0.1:\(server.port)"
    let add = try await run(
      "places", "add", "arch", "s3://media/p/", environment: keys(["AWS_ENDPOINT_URL": url]))
    #expect(add.end == .exited(0), "\(add.output)\(add.errors)")
    #expect(
      try String(contentsOfFile: configuration, encoding: .utf8).contains("endpoint = \"\(url)\""))
    let other = ScriptedPeer([.discard])
    let push = try await run(
      "push", scratch.file("a.JPG", 10), "arch:",
      environment: keys(["AWS_ENDPOINT_URL": "http://127.0.0.1:\(other.port)"]))
    #expect(push.end == .exited(0) && server.objects["p/a.JPG"] != nil, "\(push.errors)")
    #expect(other.seen.received.isEmpty)
  }

  @Test func aRemovedPlaceIsNotReplacedByAnotherOne() async throws {
    let server = peer()
    let outer =
      "[places.all]\nurl = \"put+http://127.0.0.1:\(server.port)/\"\ntoken-file = \"\(try tokenFile("other-token", "all"))\"\n"
    let place =
      "[places.nas]\nurl = \"put+http://127.0.0.1:\(server.port)/in/\"\ntoken-file = \"\(try tokenFile())\"\n"
    try writeConfiguration(place + outer)
    try await interrupt(server, "a.mov", "nas:")
    let before = server.seen.heads.count
    try writeConfiguration(outer)
    for words in [["resume"], ["resume", "all:"]] {
      let command = try Command(
        Tool.fullbore, words, in: scratch, environment: ["XDG_CONFIG_HOME": scratch.path("config")])
      try await command.wait()
      let said = command.output + command.errors
      #expect(
        said.contains("'nas', which is not in \(configuration) any more"), "\(words): \(said)")
    }
    #expect(server.seen.heads.count == before)
    try writeConfiguration(place + outer)
    let resume = try await run("resume")
    #expect(resume.end == .exited(0), "\(resume.output)\(resume.errors)")
    #expect(!server.seen.heads.joined().contains("other-token"))
  }

  @Test func aLinkToAFileThatIsStillToBeMadeIsFollowed() async throws {
    let kept = try scratch.folder("kept")
    try FileManager.default.createDirectory(
      atPath: scratch.path("config/fullbore"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: configuration, withDestinationPath: "../../kept/config.toml")
    let add = try await run("places", "add", "nas", "http://127.0.0.1:9/", "--untested")
    #expect(add.end == .exited(0), "\(add.errors)")
    #expect(
      try FileManager.default.destinationOfSymbolicLink(atPath: configuration)
        == "../../kept/config.toml")
    #expect(
      try String(contentsOfFile: "\(kept)/config.toml", encoding: .utf8).contains("[places.nas]"))
  }

  @Test(.enabled(if: Tool.find("python3") != nil)) func placesAddKeepsLinesWrittenWhileItAsks()
    async throws
  {
    try writeConfiguration("# mine\n")
    let line = "printf '[places.b]\\nurl = \"http://b/\"\\n' >> \(configuration)"
    let add = try await onTerminal(
      ["places", "add", "--untested"], answers: ["a", "\(line)!http://127.0.0.1:9/"])
    #expect(add.end == .exited(0), "\(add.output)\(add.errors)")
    let text = try String(contentsOfFile: configuration, encoding: .utf8)
    #expect(text.contains("[places.a]") && text.contains("[places.b]"), "\(text)")
    let twice = try await onTerminal(
      ["places", "add", "--untested"],
      answers: ["c", "\(line.replacingOccurrences(of: ".b]", with: ".c]"))!http://127.0.0.1:9/"])
    #expect(
      twice.end == .exited(2) && twice.output.contains("there is a place 'c' already"),
      "\(twice.output)")
  }

  @Test func doctorTakesAPlace() async throws {
    let server = try await ServeProcess.start(in: scratch, "--token-file", tokenFile())
    try writeConfiguration(
      "[places.nas]\nurl = \"\(server.url)\"\ntoken-file = \"\(scratch.path("token"))\"\n")
    let doctor = try await run("doctor", "nas:", "--yes", "--pause", "1s")
    #expect(
      doctor.end == .exited(0) && doctor.output.contains("Nothing wrong was found"),
      "\(doctor.output)")
    #expect(try await run("doctor", "nsa:").errors.contains("Did you mean 'nas:'?"))
  }

  @Test func aShellCompletesPlaces() async throws {
    try writeConfiguration(
      "[places.nas]\nurl = \"http://nas/\"\n[places.cloud]\nurl = \"http://c/\"\n")
    let names = try await run("places", "--names")
    #expect(
      names.end == .exited(0) && names.output == "nas:\ncloud:\n", "\(names.output)\(names.errors)")
    let script = """
      eval "$("$0" completions bash)"
      compopt() { :; }
      COMP_WORDS=("$0" push DCIM/ cl) COMP_CWORD=3
      _fullbore
      echo "<${COMPREPLY[*]}>"
      COMP_WORDS=("$0" push --token-file cl) COMP_CWORD=3
      _fullbore
      echo "<${COMPREPLY[*]}>"
      """
    let bash = try Command(
      "bash", ["-c", script, Tool.fullbore], in: scratch,
      environment: ["XDG_CONFIG_HOME": scratch.path("config")])
    try await bash.wait()
    #expect(bash.output == "<cloud:>\n<>\n", "\(bash.output)\(bash.errors)")
    try writeConfiguration("[places.nas]\n")
    let broken = try await run("places", "--names")
    #expect(broken.end == .exited(2) && broken.output.isEmpty && broken.errors.isEmpty)
  }
}
