// expect: has no member '__sigaction_handler'
import Darwin
func f() -> sigaction {
  var action = sigaction()
  action.__sigaction_handler.sa_handler = { _ in }
  return action
}
