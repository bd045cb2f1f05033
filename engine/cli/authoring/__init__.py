"""Help for authors of rules: drafts from pasted lines, explanations of why a rule fires or not, pages and previews."""
