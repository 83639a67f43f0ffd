"""How a mail is read: from bytes to values, without an exception and within bounds, whatever the bytes are."""
