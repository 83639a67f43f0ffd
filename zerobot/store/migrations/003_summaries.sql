-- What stands in requests for the messages that have left a conversation's window (conversations.window_seq). One row a
-- conversation; one of an older epoch counts for nothing. Lists are JSON arrays of messages.id.
CREATE TABLE summaries (
    conversation_id INTEGER PRIMARY KEY REFERENCES conversations (id) ON DELETE CASCADE,
    epoch           INTEGER NOT NULL,
    head            TEXT NOT NULL DEFAULT '[]',   -- the messages that opened the conversation, sent word for word
    kept            TEXT NOT NULL DEFAULT '[]',   -- inputs that were being answered when the window moved past them
    covers          INTEGER NOT NULL DEFAULT 0,   -- the last message that the text tells of
    after_seq       INTEGER NOT NULL DEFAULT 0,   -- the newest message when the window moved; 0: it never did
    text            TEXT NOT NULL DEFAULT '',     -- the summary
    model           TEXT NOT NULL DEFAULT '',     -- PROVIDER/MODEL that wrote it
    made_at         TEXT NOT NULL DEFAULT '',
    tried_at        TEXT NOT NULL DEFAULT ''      -- when one was last asked for, whatever came of it
);

-- A turn that goes on is loaded with all that it wrote, also with what has left the window since.
CREATE INDEX messages_turn ON messages (turn_id);
