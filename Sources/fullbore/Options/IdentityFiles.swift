import BlobCrypto
import Blobs

/// The files with private keys that open sealed files.
enum IdentityFiles {
  static let declared = OptionDeclaration.value(
    "identity", "FILE", short: "i", isRepeatable: true, "private key of age or SSH that opens sealed files; repeatable")

  static func identities(_ arguments: Arguments) throws(UsageError) -> [SealIdentity] {
    var identities: [SealIdentity] = []
    for file in arguments.all("identity") {
      let before = identities.count
      let text = try SecretFile.text(of: file, for: "--identity")
      // A key of SSH has several lines.
      let keys = text.hasPrefix("-----BEGIN") ? [text] : try SecretFile.lines(of: file, for: "--identity")
      for key in keys where !key.hasPrefix("#") {
        do { identities.append(try SealIdentity(key)) } catch {
          throw UsageError("--identity: \(shown(file)): \(error.message)")
        }
      }
      if identities.count == before { throw UsageError("--identity: \(shown(file)): no private key is in it") }
    }
    return identities
  }
}
