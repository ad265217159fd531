import Blobs
import Testing

@testable import fullbore

@Suite struct ArgumentsTests {
  static let declaration = CommandDeclaration(
    name: "try", synopsis: "try FILE...", summary: "nothing",
    options: [
      .flag("dry-run", short: "n", "only say"), .flag("verbose", short: "v", "more"),
      .value("jobs", "N", short: "j", "at once"), .value("exclude", "GLOB", isRepeatable: true, "not these"),
    ] + [.value("part-size", "SIZE", "in one request")].inGroup(.pace))

  func parse(_ arguments: BytePath...) throws(UsageError) -> Arguments { try Arguments(arguments, Self.declaration) }

  func refusal(_ arguments: BytePath...) -> String? {
    usageError { () throws(UsageError) in _ = try Arguments(arguments, Self.declaration) }
  }

  @Test func valuesStandAfterASpaceOrAnEqualsSign() throws {
    #expect(try parse("--jobs", "3").value("jobs") == "3")
    #expect(try parse("--jobs=3").value("jobs") == "3")
    #expect(try parse("--jobs=").value("jobs") == "")
    #expect(try parse("--exclude=a=b").value("exclude") == "a=b")
    #expect(try parse("-j", "3").value("jobs") == "3")
    #expect(try parse("-j3").value("jobs") == "3")
  }

  @Test func shortFlagsMayStandTogether() throws {
    let arguments = try parse("-nvj4", "x")
    #expect(arguments.flag("dry-run") && arguments.flag("verbose"))
    #expect(arguments.value("jobs") == "4")
    #expect(arguments.operands == ["x"])
  }

  @Test func theLastValueCountsAndRepeatableOnesAllDo() throws {
    let arguments = try parse("--jobs", "1", "--exclude", "a", "x", "--exclude", "b", "--jobs", "2")
    #expect(arguments.value("jobs") == "2")
    #expect(arguments.all("exclude") == ["a", "b"])
  }

  @Test func aDoubleDashEndsTheOptions() throws {
    let arguments = try parse("a", "--", "--jobs", "-n", "--")
    #expect(arguments.operands == ["a", "--jobs", "-n", "--"])
    #expect(!arguments.flag("dry-run"))
  }

  @Test func aSingleDashIsAnOperand() throws {
    #expect(try parse("-").operands == ["-"])
  }

  @Test func bytesThatAreNoTextStayAsTheyAre() throws {
    let name = BytePath([0x61, 0xFF, 0x62])
    #expect(try parse(name).operands == [name])
    #expect(try parse(BytePath(Array("--exclude=".utf8) + name.bytes)).all("exclude") == [name])
    let arguments = try parse(BytePath(Array("--jobs=".utf8) + name.bytes))
    #expect(usageError { () throws(UsageError) in _ = try arguments.count("jobs", 1...9) }?.contains("UTF-8") == true)
  }

  @Test func theErrorNamesAWrongOptionWithAdvice() {
    #expect(refusal("--jbos", "3") == "there is no option '--jbos'. Did you mean '--jobs'?")
    #expect(refusal("--ex", "3") == "there is no option '--ex'. Did you mean '--exclude'?")
    #expect(refusal("--kobz", "3") == "there is no option '--kobz'.")
    #expect(refusal("--zzzzzz") == "there is no option '--zzzzzz'.")
    #expect(refusal("-x")?.contains("'-x'") == true)
    #expect(refusal("--jobs") == "--jobs needs a value: --jobs N")
    #expect(refusal("-nj") == "-j needs a value: -j N")
    #expect(refusal("--dry-run=yes") == "--dry-run takes no value")
  }

  @Test(arguments: ["0", "10", "", "x", "-1", "1.5"])
  func countsAreHeldAgainstTheirRange(_ text: String) throws {
    let arguments = try parse("--jobs", BytePath(text))
    let refusal = usageError { () throws(UsageError) in _ = try arguments.count("jobs", 1...9) }
    #expect(refusal == "--jobs '\(text)': wanted a number from 1 to 9")
  }

  @Test func helpIsMadeOfTheDeclarations() throws {
    #expect(try parse("--help").wantsHelp == .short)
    #expect(try parse("-nh").wantsHelp == .short)
    #expect(try parse("--help-all").wantsHelp == .whole)
    let (short, whole) = (Self.declaration.help(.short), Self.declaration.help(.whole))
    #expect(short.contains("  -j, --jobs N        at once\n"))
    #expect(short.contains("      --exclude GLOB  not these\n"))
    #expect(!short.contains("--part-size"))
    #expect(whole.contains("  -j, --jobs N          at once\n"))
    #expect(whole.contains("\nSpeed:\n      --part-size SIZE  in one request\n"))
  }

  @Test func everyCommandHasHelpWithinReason() {
    for line in Fullbore.help.split(separator: "\n") { #expect(line.count <= 120, "\(line)") }
    for command in Fullbore.commands {
      #expect(!command.declaration.examples.isEmpty, "\(command.declaration.name)")
      for length in HelpLength.allCases {
        let lines = command.declaration.help(length).split(separator: "\n")
        #expect(lines.allSatisfy { $0.count <= 120 }, "\(command.declaration.name)")
        #expect(length == .whole || lines.count <= 36, "\(command.declaration.name): \(lines.count) lines")
      }
    }
  }
}
