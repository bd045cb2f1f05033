"""What helps to write rules: a draft from pasted lines, why a rule does or does not fire, pages and previews of rules."""
