import BlobUpload

extension PushOptions {
  /// Throws if an option needs what a shared queue does not have. `removes`: sources are to be deleted.
  func checkForQueue(removes: Bool) throws(UsageError) {
    let refused: [(Bool, String)] = [
      (!also.isEmpty, "--also"), (seal.sealing != nil, "--seal, --seal-passphrase and --seal-names"),
      (layout != nil, "--layout"), (onConflict == .rename, "--on-conflict rename"),
      (onConflict == .skip, "--on-conflict skip"), (edits != nil, "--edits"), (checks, "--check"),
      (hashLists != nil, "--mhl"), (removes, "--delete-after-verify"), (destination.isForm, "form+"),
      (readsStandardInput, "standard input"), (!urls.isEmpty, "a source at a URL"),
      (!databases.isEmpty, "a source in a database"), (destination.endpoint.query != nil, "a query in the destination"),
    ]
    guard let (_, name) = refused.first(where: { $0.0 }) else { return }
    throw UsageError(
      "\(name) cannot be used with --journal postgres://…: leave it out, or push that from one machine with --journal FILE"
    )
  }
}
