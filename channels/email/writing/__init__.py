"""An answer as a mail: from words to bytes that any server takes."""
