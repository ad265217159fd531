/// A shell for which a script of completions can be printed.
enum Shell: String, CaseIterable, Sendable {
  case bash, zsh, fish

  /// A script that completes commands, options and the files that options and operands name.
  func script(_ commands: [CommandDeclaration]) -> String {
    switch self {
    case .bash: Self.bash(commands)
    case .zsh: Self.zsh(commands)
    case .fish: Self.fish(commands)
    }
  }

  /// Bash completes a file name itself where the function replies nothing.
  private static func bash(_ commands: [CommandDeclaration]) -> String {
    let cases = commands.map { command in
      let options = command.completed
      let words = options.map { "--\($0.name)" }.joined(separator: " ")
      let values = options.filter { $0.value != nil && !$0.namesFile }
        .flatMap { ["--\($0.name)"] + ($0.short.map { ["-\($0)"] } ?? []) }.joined(separator: " ")
      let files = options.filter(\.namesFile).map { "--\($0.name)" }.joined(separator: " ")
      return "  \(command.name)) options='\(words)' values='\(values)' files='\(files)' ;;\n"
    }
    let choices = commands.flatMap { command in
      command.completed.filter { !$0.choices.isEmpty }.map { option in
        "  '\(command.name) --\(option.name)') words='\(option.choices.joined(separator: " "))' ;;\n"
      }
    }
    let operands = commands.filter { !$0.operands.isEmpty }.map { command in
      "  '\(command.name) \(command.name)') words='\(command.operands.joined(separator: " "))' ;;\n"
    }
    return """
      # Completions of fullbore for bash: made by 'fullbore completions bash'.
      _fullbore() {
        local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options values files words=
        COMPREPLY=()
        if [ "$COMP_CWORD" -eq 1 ]; then
          mapfile -t COMPREPLY < <(compgen -W '\(commands.map(\.name).joined(separator: " "))' -- "$word")
          return
        fi
        case ${COMP_WORDS[1]} in
      \(cases.joined())  *) return ;;
        esac
        case "${COMP_WORDS[1]} $before" in
      \(choices.joined())\(operands.joined())  esac
        if [ -n "$words" ]; then
          mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
          return
        fi
        # Other values that are no files cannot be completed.
        case " $values " in
        *" $before "*) compopt +o default +o bashdefault; return ;;
        esac
        case $word in
        -*) mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word"); return ;;
        esac
        case " $files " in
        *" $before "*) return ;;
        esac
        case ${COMP_WORDS[1]} in
        \(placed(commands).joined(separator: "|")))
          mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" places --names 2>/dev/null)" -- "$word")
          if [ ${#COMPREPLY[@]} -gt 0 ]; then
            compopt -o nospace
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
          fi ;;
        esac
      }
      complete -o bashdefault -o default -F _fullbore fullbore

      """
  }

  private static func zsh(_ commands: [CommandDeclaration]) -> String {
    let names = commands.map { "    \(quoted("\($0.name):\($0.summary)"))\n" }
    let cases = commands.map { command in
      let options = command.completed.map { option in
        let help = option.help.replacing("[", with: "\\[").replacing("]", with: "\\]")
        let choices = option.choices.map { $0.replacing(":", with: "\\:") }.joined(separator: " ")
        let offered = option.namesFile ? "_files" : choices.isEmpty ? " " : "(\(choices))"
        let value = option.value.map { ":\($0.replacing(":", with: "\\:")):\(offered)" } ?? ""
        let text = quoted("[\(help)]\(value)")
        let repeats = option.isRepeatable ? "\\*" : ""
        guard let short = option.short else { return "      \(repeats)--\(option.name)\(text)" }
        return "      '(-\(short) --\(option.name))'{-\(short),--\(option.name)}\(text)"
      }
      let operands =
        command.takesPlaces
        ? "_fullbore_operands"
        : command.operands.isEmpty ? "_files" : "(\(command.operands.joined(separator: " ")))"
      return
        "  \(command.name))\n    _arguments -S \\\n\(options.joined(separator: " \\\n")) \\\n      '*:file:\(operands)' ;;\n"
    }
    return """
      #compdef fullbore
      # Completions of fullbore for zsh: made by 'fullbore completions zsh'.
      _fullbore_operands() {
        local -a places
        places=(${(f)"$(fullbore places --names 2>/dev/null)"})
        _alternative 'files:file:_files' 'places:place:compadd -S "" -a places'
      }
      _fullbore() {
        local -a commands
        commands=(
      \(names.joined())  )
        if (( CURRENT == 2 )); then
          _describe -t commands command commands
          return
        fi
        local command=$words[2]
        shift words
        (( CURRENT-- ))
        case $command in
      \(cases.joined())  esac
      }
      if [ "$funcstack[1]" = _fullbore ]; then _fullbore "$@"; else compdef _fullbore fullbore; fi

      """
  }

  private static func fish(_ commands: [CommandDeclaration]) -> String {
    let lines = commands.flatMap { command in
      ["complete -c fullbore -n __fish_use_subcommand -f -a \(command.name) -d \(fishQuoted(command.summary))"]
        + command.completed.map { option in
          let short = option.short.map { " -s \($0)" } ?? ""
          // -r: a value, which may be a file; -x: a value that is none.
          let offered = option.choices.isEmpty ? "" : " -a '\(option.choices.joined(separator: " "))'"
          let value = option.value == nil ? "" : option.namesFile ? " -r" : " -x\(offered)"
          return
            "complete -c fullbore -n '__fish_seen_subcommand_from \(command.name)' -l \(option.name)\(short)\(value) "
            + "-d \(fishQuoted(option.help))"
        }
    }
    return "# Completions of fullbore for fish: made by 'fullbore completions fish'.\n"
      + lines.map { $0 + "\n" }.joined()
      + commands.filter { !$0.operands.isEmpty }.map { command in
        "complete -c fullbore -n '__fish_seen_subcommand_from \(command.name)' -f -a "
          + "'\(command.operands.joined(separator: " "))'\n"
      }.joined()
      + placed(commands).map { name in
        "complete -c fullbore -n '__fish_seen_subcommand_from \(name)' -a '(fullbore places --names 2>/dev/null)'\n"
      }.joined()
  }

  /// The names of the commands that take places.
  private static func placed(_ commands: [CommandDeclaration]) -> [String] {
    commands.filter(\.takesPlaces).map(\.name)
  }

  /// `text` as one word of bash and zsh.
  private static func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }

  /// `text` as one word of fish, in whose quotes a backslash escapes.
  private static func fishQuoted(_ text: String) -> String {
    "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
  }
}

extension CommandDeclaration {
  /// Its options with those for help.
  fileprivate var completed: [OptionDeclaration] {
    options + [.flag("help", short: "h", "what most people need")]
      + (hasMore ? [.flag("help-all", "all options, and what to know")] : [])
  }
}
