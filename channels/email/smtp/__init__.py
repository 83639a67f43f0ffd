"""Handing mails in by SMTP: one connection, and several at once."""
