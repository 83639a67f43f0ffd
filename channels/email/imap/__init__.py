"""A mailbox by IMAP: connections, what servers answer, and waiting for mail."""
