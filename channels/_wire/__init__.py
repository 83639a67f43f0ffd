"""What adapters share on their way to a platform: waits after faults, pauses that a platform asked for, known chats."""
