"""What a mail says: its texts as text, the new words apart from quotes and signatures."""
