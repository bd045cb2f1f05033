"""What tocsin costs: `make bench`. Figures stand beside the corpus, machine, commit and command that they are of."""
