import Testing

/// The real binary against real servers. One test after the other: they start programs, measure memory and kill.
@Suite(.serialized) enum EndToEnd {}
