"""Who wrote a mail: what our own server found when it took it, or our own check of its signatures."""
