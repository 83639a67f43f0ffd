"""The turn engine: from an accepted input to its one final reply. README.md says what each file owns."""
