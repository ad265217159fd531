/// A statement or a connection has failed.
package struct PostgresError: Error, Sendable {
  /// Has no password.
  package var message: String
  /// Whether the same statement may succeed later: the server cannot be reached, or has ended the transaction for a reason
  /// that lies in other transactions. Whether the statement has had an effect is not known.
  package var isTemporary: Bool

  package init(_ message: String, isTemporary: Bool) {
    // libpq indents further lines by a tab.
    let lines = message.split(separator: "\n").map { $0.drop { $0 == "\t" || $0 == " " } }
    self.message = lines.filter { !$0.isEmpty }.joined(separator: "; ").replacing("\t", with: " ")
    self.isTemporary = isTemporary
  }

  /// `state`: the SQLSTATE of a refused statement. PostgreSQL, appendix A.
  init(_ message: String, state: String) {
    // Connections (08), resources (53), the operator (57), the system (58), conflicts with others (40, 25006, 23505).
    let isTemporary = ["08", "40", "53", "57", "58"].contains(state.prefix(2)) || ["25006", "23505"].contains(state)
    self.init(message, isTemporary: isTemporary)
  }
}
