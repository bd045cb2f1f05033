"""Fuzzing led by coverage (`make fuzz`): libFuzzer through atheris, with the checks of the tests."""
