#if os(Linux)
  /// libcurl loads GnuTLS for protocols that are not used here. GnuTLS calls this function when it is loaded, and prepares
  /// itself unless the result is other than 0, which would take 1 MiB of memory in each run. `scripts/build` exports the
  /// function. A program that uses GnuTLS prepares it by a call of its own.
  @_cdecl("_gnutls_global_init_skip")
  public func skipsPreparingGnuTLS() -> Int32 { 1 }
#endif
