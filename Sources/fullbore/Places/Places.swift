import BlobHTTP
import BlobUpload
import Blobs
import Platform

/// All places of the user, as `config.toml` has them.
struct Places: Sendable {
  let file: BytePath
  let all: [Place]

  /// The path of the file, which may not exist. XDG Base Directory Specification 0.8.
  static func path() throws(UsageError) -> BytePath {
    if let folder = environment("XDG_CONFIG_HOME"), folder.isAbsolute {
      return folder.appending("fullbore/config.toml")
    }
    guard let home = environment("HOME"), home.isAbsolute else {
      throw UsageError("there is no home folder, and so no file of places: set HOME or XDG_CONFIG_HOME")
    }
    return home.appending(".config/fullbore/config.toml")
  }

  /// Reads the file. Without a file, or a home folder, there are no places.
  static func load(_ path: BytePath? = try? path()) throws(UsageError) -> Places {
    guard let path else { return Places(file: "", all: []) }
    var status = stat()
    if path.status(&status) != 0 {
      if path.isMissing { return Places(file: path, all: []) }
      throw UsageError("\(shown(path)): \(String(cString: strerror(errno)))")
    }
    // Its commands run as this user, so nobody else may write them.
    guard status.st_uid == geteuid() || status.st_uid == 0 else {
      throw UsageError("\(shown(path)) belongs to another user, who could have any command run: it is not used")
    }
    guard status.st_mode & 0o022 == 0 else {
      throw UsageError(
        "\(shown(path)) can be written by other users, who could have any command run: chmod go-w \(shown(path))")
    }
    return Places(file: path, all: try PlacesReader(path, try SecretFile.bytes(of: path)).places())
  }

  /// Throws if there is none with this name; the error has the nearest one.
  func named(_ name: String) throws(UsageError) -> Place {
    if let place = all.first(where: { $0.name == name }) { return place }
    let hint = closest(to: name, among: all.map(\.name)).map { " Did you mean '\($0):'?" } ?? ""
    throw UsageError(
      "there is no place called '\(name)'.\(hint) "
        + (all.isEmpty ? "'fullbore places add \(name) URL' makes it" : "'fullbore places' lists what there is")
        + "; a URL begins with http://, https://, s3:// or gs://")
  }

  /// The place to which uploads to this URL go: of several, the one with the longest path.
  func containing(_ url: HTTPURL) -> Place? {
    all.filter { $0.contains(url) }.max { ($0.endpoint?.path.utf8.count ?? 0) < ($1.endpoint?.path.utf8.count ?? 0) }
  }
}

extension Places {
  /// The place in `nas:2026/`, and the URL for that; nil: the destination is written without a place, as all URLs are.
  static func destination(_ given: BytePath) throws(UsageError) -> (Place, url: BytePath)? {
    if given.bytes.firstRange(of: Array("://".utf8)) != nil { return nil }
    let text = given.bytes.prefix { $0 != UInt8(ascii: ":") }
    let name = String(decoding: text, as: UTF8.self)
    guard Place.isName(name), !Place.reserved.contains(name.lowercased()) else { return nil }
    if text.count == given.bytes.count {
      // Without a colon it is no place; a file that cannot be read says nothing about it.
      guard (try? load())?.all.contains(where: { $0.name == name }) == true else { return nil }
      throw UsageError("destination '\(name)': a place is written with a colon: '\(name):'")
    }
    let place = try load().named(name)
    return (place, try place.destination(of: BytePath(given.bytes.dropFirst(text.count + 1))))
  }
}

extension Arguments {
  /// These arguments, with the place that the last operand names: its URL in place of its name, and its values for the
  /// options that are not given. Without a place they stay as they are.
  func withPlace() throws(UsageError) -> Arguments {
    guard let last = operands.last, let (place, url) = try Places.destination(last) else { return self }
    var result = self
    result.use(place, as: url)
    return result
  }
}

extension ConnectionOptions {
  /// The place's options for connections, for uploads that the journal knows.
  init(_ place: Place) throws(UsageError) {
    try self.init(Arguments(place, PlacesCommand.connections))
  }

  /// The credentials for uploads of an earlier push to `kept`, where neither the user nor the journal says where they
  /// are. Throws if they came from a place that is not there any more.
  mutating func takePlace(for kept: JournalDestination) throws(UploadError) {
    guard kept.s3 == nil, let url = HTTPURL(kept.endpoint) else { return }
    do throws(UsageError) {
      let places = try Places.load()
      if let place = places.containing(url) {
        let found = try ConnectionOptions(place)
        takeCredentials(of: found)
        certificates = certificates ?? found.certificates
        proxy = proxy ?? found.proxy
        isInsecure = isInsecure || found.isInsecure
        retries = retries ?? found.retries
        timeout = timeout ?? found.timeout
        finishTimeout = finishTimeout ?? found.finishTimeout
        return
      }
      guard let name = kept.placeName else { return }
      let now = places.all.first { $0.name == name }.map { ", and '\(name)' is \($0.url) now" } ?? ""
      throw UsageError(
        "\(kept.endpoint): the credentials of this push were those of the place '\(name)'. \(shown(places.file)) has no place "
          + "for this URL any more\(now): give them with --token-file, --netrc or --header @FILE, or mend that file")
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
  }
}

extension PaceOptions {
  /// What is not given is as the place of the uploads has it.
  func completed(for kept: JournalDestination) throws(UploadError) -> PaceOptions {
    do throws(UsageError) {
      guard kept.s3 == nil, let url = HTTPURL(kept.endpoint), let place = try Places.load().containing(url) else {
        return self
      }
      let found = try PaceOptions(Arguments(place, PlacesCommand.connections))
      var result = self
      result.jobs = jobs ?? found.jobs
      result.partsAtOnce = partsAtOnce ?? found.partsAtOnce
      result.bytesPerSecond = bytesPerSecond ?? found.bytesPerSecond
      return result
    } catch {
      throw UploadError(.giveUp, .destination, error.message)
    }
  }
}
