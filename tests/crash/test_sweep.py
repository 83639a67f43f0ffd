"""The whole way of a message, killed at every commit: before it, and after it."""
