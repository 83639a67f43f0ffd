"""The screen and the keyboard of `zerobot chat`; the other side is a channel, in this process or in a daemon."""
