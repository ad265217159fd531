import Blobs
import CSQLite
import Platform

/// The path of the file to which the symbolic links in `path` lead; `path` itself if there is no such file. SQLite
/// follows links by recursion, and a loop of links would exhaust the stack of a thread.
func withoutLinks(_ path: BytePath) throws(SQLiteError) -> BytePath {
  if let resolved = path.resolved() { return resolved }
  if errno == ELOOP { throw SQLiteError("open", path, code: SQLITE_CANTOPEN, String(cString: strerror(ELOOP))) }
  return path
}
