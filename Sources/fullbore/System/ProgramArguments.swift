import Blobs
import Platform

/// The arguments of the program as bytes, without its own name. `CommandLine.arguments` would replace invalid UTF-8.
enum ProgramArguments {
  static func all() -> [BytePath] { ofProcess() ?? ofRuntime() }

  /// From the kernel. nil: there is no `/proc`, or the program was started as an argument of the dynamic loader.
  private static func ofProcess() -> [BytePath]? {
    guard !isLoader, let file = fopen("/proc/self/cmdline", "re") else { return nil }
    defer { fclose(file) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4096)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { text += buffer.prefix(count) }
    // Each argument ends with a NUL.
    guard ferror(file) == 0, text.popLast() == 0 else { return nil }
    return text.split(separator: 0, omittingEmptySubsequences: false).dropFirst().map { BytePath($0) }
  }

  private static var isLoader: Bool {
    let name = OwnProgram.path.name.description
    return name.hasPrefix("ld") && name.contains(".so")
  }

  /// On Linux the runtime expects the arguments in memory before the environment. They are not there if a preloaded library
  /// has added a variable and so moved the environment.
  private static func ofRuntime() -> [BytePath] {
    (1..<max(1, Int(CommandLine.argc))).compactMap { index in
      CommandLine.unsafeArgv[index].map { BytePath(cString: $0) }
    }
  }
}
