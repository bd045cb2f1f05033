"""Text that somebody could write into a log to have it run by whoever pastes a command."""

from __future__ import annotations

HOSTILE = [
    *("a'b", 'a"b', "'; id; '", "$(id)", "$((1))", "$HOME", "${IFS}", "a$b", "`id`", "\\$(id)", "a\\b", "\\\nb"),
    *("a b", "a\tb", "a\nb", "a\rb", "a\r\nb", "\na", "a\n", "a\0b", "\x1b[0m", "\x1b]0;x\x07", "a\x7fb", "a\x85b"),
    *("-rf", "--alter", "-", "--", "a;b", "a|b", "a&b", "a&&b", "a>b", "a<b", "a#b!", "!!", "a*b", "a?b", "{a,b}", "~root;x"),
    *("", "x" * 250, "x" * 10_000, "a\u202eb", "\u2066a", "a\u200bb", "\ufeffa", "a\u2028b", "a\u00a0b", "\ud800", "${v:?}"),
]
