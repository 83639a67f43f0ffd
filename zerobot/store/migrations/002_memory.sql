-- What is remembered beyond the window of a conversation. An owner is person:PLATFORM:ID, conversation:NUMBER or agent:NAME.
-- An earlier version of an entry is kept, so that a correction can be undone; there is one current entry a key.
CREATE TABLE memories (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    owner           TEXT NOT NULL CHECK (owner GLOB 'person:*' OR owner GLOB 'conversation:*' OR owner GLOB 'agent:*'),
    key             TEXT NOT NULL,
    folded_key      TEXT NOT NULL,          -- as keys are compared
    text            TEXT NOT NULL,
    kind            TEXT NOT NULL CHECK (kind IN ('core', 'passing')),
    source          TEXT NOT NULL CHECK (source IN ('said', 'content', 'schedule', 'operator')),
    written_by      TEXT NOT NULL,
    conversation_id INTEGER,                -- where it was said; the entry outlives that conversation
    turn_id         TEXT,
    created_at      TEXT NOT NULL,
    superseded_at   TEXT,                   -- NULL: it is the current one
    CHECK (owner NOT GLOB 'agent:*' OR source = 'operator')
);
CREATE UNIQUE INDEX memories_current ON memories (owner, folded_key) WHERE superseded_at IS NULL;
CREATE INDEX memories_versions ON memories (owner, folded_key);

-- The words of the current entries, as store/memory_words.py cuts them. `owner` is one word, the owner in hexadecimal, so
-- that a search touches no other owner's rows.
CREATE VIRTUAL TABLE memory_words USING fts5 (
    owner, key_words, text_words, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'"
);

-- Who else has spoken in a conversation: a person's own entries are only for chats of his alone.
CREATE INDEX turns_askers ON turns (conversation_id, asker) WHERE origin = 'user';
