"""What adapters share on their way to a platform: waits after faults, pauses it asked for, known chats, downloads."""
