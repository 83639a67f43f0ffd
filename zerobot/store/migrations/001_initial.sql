-- Times are UTC in ISO 8601 with microseconds, so that they compare as text. Identities are PLATFORM:ID.

-- A stream of messages. The key is kept as columns: no character is squashed, so no two keys collide.
CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    channel    TEXT NOT NULL,
    chat       TEXT NOT NULL,
    thread     TEXT NOT NULL DEFAULT '',
    sender     TEXT NOT NULL DEFAULT '',
    direct     INTEGER NOT NULL,
    epoch      INTEGER NOT NULL DEFAULT 0,  -- raised by /new; a turn of an older epoch writes no history any more
    window_seq INTEGER NOT NULL DEFAULT 0,  -- the first message in the model's view; it moves in jumps, to keep the prefix stable
    model      TEXT NOT NULL DEFAULT '',    -- chosen by /model, else the agent's
    created_at TEXT NOT NULL,
    UNIQUE (channel, chat, thread, sender)
);

-- Every accepted envelope, stored before the platform is told that we have it. The UNIQUE is the deduplication.
CREATE TABLE inbox (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    channel         TEXT NOT NULL,
    event_id        TEXT NOT NULL,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    message_id      TEXT NOT NULL,
    sender          TEXT NOT NULL,
    album           TEXT NOT NULL DEFAULT '',
    state           TEXT NOT NULL CHECK (state IN ('waiting', 'command', 'taken', 'done', 'cancelled')),
    turn_id         TEXT,
    envelope        TEXT NOT NULL,          -- JSON; emptied when the row is only kept to know its event id
    accepted_at     TEXT NOT NULL,
    UNIQUE (channel, event_id)
);
CREATE INDEX inbox_open ON inbox (conversation_id, id) WHERE state IN ('waiting', 'command');
CREATE INDEX inbox_turn ON inbox (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX inbox_message ON inbox (conversation_id, message_id);

-- Everything between an accepted input and its final reply. At most one is open in a conversation.
CREATE TABLE turns (
    id                   TEXT PRIMARY KEY,
    conversation_id      INTEGER NOT NULL REFERENCES conversations (id),
    epoch                INTEGER NOT NULL,
    origin               TEXT NOT NULL,
    asker                TEXT NOT NULL,
    asker_name           TEXT NOT NULL,
    reply_to             TEXT NOT NULL,
    state                TEXT NOT NULL CHECK (state IN ('running', 'suspended', 'paused', 'finished')),
    crashes              INTEGER NOT NULL DEFAULT 0,  -- starts that found it running; a graceful stop suspends it instead
    steps                INTEGER NOT NULL DEFAULT 0,
    preface              TEXT NOT NULL DEFAULT '',    -- a line that opens the reply: what happened to an earlier request
    settled_seq          INTEGER NOT NULL DEFAULT 0,  -- messages up to here stand in the chat as settled messages already
    input_tokens         INTEGER NOT NULL DEFAULT 0,
    output_tokens        INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens    INTEGER NOT NULL DEFAULT 0,
    cache_write_tokens   INTEGER NOT NULL DEFAULT 0,
    failed_input_tokens  INTEGER NOT NULL DEFAULT 0,  -- part of the totals: attempts that gave no answer
    failed_output_tokens INTEGER NOT NULL DEFAULT 0,
    outside_content      INTEGER NOT NULL DEFAULT 0,  -- a tool result of this turn was written by somebody else
    started_at           TEXT NOT NULL,
    finished_at          TEXT,
    outcome              TEXT,
    reason               TEXT,
    error_code           TEXT
);
CREATE UNIQUE INDEX turns_one_open ON turns (conversation_id) WHERE state <> 'finished';
CREATE INDEX turns_open ON turns (state) WHERE state <> 'finished';

-- What was said; `id` is the sequence number. Tool results are not here: each call carries its own.
CREATE TABLE messages (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    turn_id         TEXT NOT NULL REFERENCES turns (id),
    role            TEXT NOT NULL CHECK (role IN ('user', 'assistant')),
    text            TEXT NOT NULL,
    extra           TEXT NOT NULL DEFAULT '{}',  -- JSON: speaker, files, note; reasoning, partial, notice
    created_at      TEXT NOT NULL
);
CREATE INDEX messages_conversation ON messages (conversation_id, id);

-- One call of one step: recorded with its message, started before the tool runs, finished with its result.
CREATE TABLE tool_calls (
    id              TEXT PRIMARY KEY,
    message_id      INTEGER NOT NULL REFERENCES messages (id),
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    turn_id         TEXT NOT NULL REFERENCES turns (id),
    position        INTEGER NOT NULL,
    wire_id         TEXT NOT NULL,
    name            TEXT NOT NULL,
    arguments       TEXT NOT NULL,          -- JSON object that runs; '{}' when raw_arguments is none
    raw_arguments   TEXT NOT NULL,
    state           TEXT NOT NULL CHECK (state IN ('recorded', 'started', 'finished')),
    code            TEXT,
    result          TEXT,
    receipt         TEXT NOT NULL DEFAULT '',
    started_at      TEXT,
    finished_at     TEXT,
    UNIQUE (message_id, position),
    UNIQUE (conversation_id, wire_id)
);
CREATE INDEX tool_calls_turn ON tool_calls (turn_id);

-- One operator's decision on one call. The only way out of 'pending' is one conditional UPDATE.
CREATE TABLE approvals (
    id              TEXT PRIMARY KEY,
    code            TEXT NOT NULL UNIQUE,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    turn_id         TEXT NOT NULL REFERENCES turns (id),
    call_id         TEXT NOT NULL REFERENCES tool_calls (id),
    tool            TEXT NOT NULL,
    arguments       TEXT NOT NULL,
    digest          TEXT NOT NULL,
    rule            TEXT NOT NULL,
    why             TEXT NOT NULL,
    description     TEXT NOT NULL,
    asker           TEXT NOT NULL,
    asker_name      TEXT NOT NULL,
    channel         TEXT NOT NULL,
    chat            TEXT NOT NULL,
    thread          TEXT NOT NULL DEFAULT '',
    sandbox         TEXT NOT NULL,
    grantable       INTEGER NOT NULL,
    covers          TEXT NOT NULL,           -- what "always" would allow, as the operator reads it
    state           TEXT NOT NULL DEFAULT 'pending'
                    CHECK (state IN ('pending', 'approved', 'denied', 'expired', 'cancelled')),
    requested_at    TEXT NOT NULL,
    shown_at        TEXT,                    -- when the first operator could see it
    expires_at      TEXT NOT NULL,
    decided_by      TEXT,
    decided_by_name TEXT NOT NULL DEFAULT '',
    decided_at      TEXT,
    reason          TEXT NOT NULL DEFAULT ''
);
CREATE INDEX approvals_pending ON approvals (expires_at) WHERE state = 'pending';
CREATE INDEX approvals_turn ON approvals (turn_id);
CREATE INDEX approvals_call ON approvals (call_id);

-- Where an approval was shown. A copy found 'sending' is shown again: a second prompt does no harm, a decision counts once.
CREATE TABLE approval_prompts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    approval_id TEXT NOT NULL REFERENCES approvals (id),
    channel     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    thread      TEXT NOT NULL DEFAULT '',
    state       TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
    platform_id TEXT NOT NULL DEFAULT '',
    settled     INTEGER NOT NULL DEFAULT 0,  -- the message shows the decision, its buttons are gone
    UNIQUE (approval_id, channel, chat, thread)
);
CREATE INDEX approval_prompts_unsettled ON approval_prompts (approval_id) WHERE settled = 0;

-- "Always in this chat".
CREATE TABLE grants (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id INTEGER NOT NULL REFERENCES conversations (id),
    tool            TEXT NOT NULL,
    pattern         TEXT NOT NULL,
    granted_by      TEXT NOT NULL,
    granted_at      TEXT NOT NULL,
    expires_at      TEXT NOT NULL,
    revoked_at      TEXT
);
CREATE INDEX grants_conversation ON grants (conversation_id) WHERE revoked_at IS NULL;

-- The outbox: what people get, stored before it is sent. While 'open' a draft may stream; 'queued' has its final text.
CREATE TABLE replies (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    turn_id         TEXT,                    -- none for notices that belong to no turn
    conversation_id INTEGER REFERENCES conversations (id),
    channel         TEXT NOT NULL,
    chat            TEXT NOT NULL,
    thread          TEXT NOT NULL DEFAULT '',
    reply_to        TEXT NOT NULL DEFAULT '',
    state           TEXT NOT NULL CHECK (state IN ('open', 'queued', 'done', 'failed')),
    text            TEXT NOT NULL DEFAULT '', -- Markdown
    error           TEXT NOT NULL DEFAULT '',
    created_at      TEXT NOT NULL,
    finished_at     TEXT
);
CREATE UNIQUE INDEX replies_open ON replies (turn_id) WHERE state = 'open';
CREATE INDEX replies_queued ON replies (id) WHERE state IN ('open', 'queued');
CREATE INDEX replies_turn ON replies (turn_id) WHERE turn_id IS NOT NULL;

-- The messages that a reply becomes on its platform.
CREATE TABLE reply_parts (
    reply_id    INTEGER NOT NULL REFERENCES replies (id) ON DELETE CASCADE,
    position    INTEGER NOT NULL,
    body        TEXT,                        -- JSON; NULL: the message is to be deleted
    state       TEXT NOT NULL CHECK (state IN ('queued', 'sending', 'sent', 'failed')),
    platform_id TEXT NOT NULL DEFAULT '',
    repeated    INTEGER NOT NULL DEFAULT 0,  -- it was sent a second time, marked as a possible repeat; never a third
    PRIMARY KEY (reply_id, position)
) WITHOUT ROWID;

-- Who may talk on a channel beyond its list, and who asks to.
CREATE TABLE pairings (
    channel      TEXT NOT NULL,
    identity     TEXT NOT NULL,
    name         TEXT NOT NULL,
    chat         TEXT NOT NULL,              -- where the person is told
    state        TEXT NOT NULL CHECK (state IN ('pending', 'allowed', 'revoked')),
    code         TEXT NOT NULL DEFAULT '',
    expires_at   TEXT NOT NULL DEFAULT '',
    told_at      TEXT NOT NULL DEFAULT '',   -- a stranger gets a notice at most once an hour
    decided_by   TEXT NOT NULL DEFAULT '',
    decided_at   TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (channel, identity)
) WITHOUT ROWID;
CREATE UNIQUE INDEX pairings_code ON pairings (code) WHERE state = 'pending';

-- A name on an allow-list, bound to the id of the first person who wrote under it.
CREATE TABLE handles (
    channel  TEXT NOT NULL,
    handle   TEXT NOT NULL,
    identity TEXT NOT NULL,
    bound_at TEXT NOT NULL,
    PRIMARY KEY (channel, handle)
) WITHOUT ROWID;

-- Wrong codes, to slow down guessing; `subject` is an identity, or '*' for everybody together.
CREATE TABLE wrong_codes (
    subject TEXT NOT NULL,
    at      TEXT NOT NULL
);
CREATE INDEX wrong_codes_subject ON wrong_codes (subject, at);

-- One row a model call, the failed ones too. The price is worked out when it is shown.
CREATE TABLE model_calls (
    id                 INTEGER PRIMARY KEY AUTOINCREMENT,
    turn_id            TEXT NOT NULL,
    conversation_id    INTEGER NOT NULL,
    channel            TEXT NOT NULL,
    asker              TEXT NOT NULL,
    model              TEXT NOT NULL,        -- PROVIDER/MODEL
    purpose            TEXT NOT NULL,        -- step, closing
    failed             INTEGER NOT NULL,
    reported           INTEGER NOT NULL,     -- 0: the provider said nothing, the numbers are unknown
    input_tokens       INTEGER NOT NULL,
    output_tokens      INTEGER NOT NULL,
    cache_read_tokens  INTEGER NOT NULL,
    cache_write_tokens INTEGER NOT NULL,
    at                 TEXT NOT NULL
);
CREATE INDEX model_calls_at ON model_calls (at);
CREATE INDEX model_calls_turn ON model_calls (turn_id);

-- Who did what beside approvals (which are their own record): pairing, freezing, revoking.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      TEXT NOT NULL,
    actor   TEXT NOT NULL,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL
);

-- Small values that must survive a restart: a channel's offset, the freeze switch (channel '').
CREATE TABLE channel_state (
    channel TEXT NOT NULL,
    key     TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (channel, key)
) WITHOUT ROWID;
