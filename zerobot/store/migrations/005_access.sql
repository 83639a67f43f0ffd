-- Which rule let a call start, for the audit: `risk`, `grant`, `allowed_commands`, ...
ALTER TABLE tool_calls ADD COLUMN rule TEXT NOT NULL DEFAULT '';

-- A stranger's request as operators are asked about it by buttons: its id, and when they were asked.
ALTER TABLE pairings ADD COLUMN request TEXT NOT NULL DEFAULT '';
ALTER TABLE pairings ADD COLUMN asked_at TEXT NOT NULL DEFAULT '';

-- Where operators were asked whether to let somebody in. It tells who was meant also when the request is forgotten.
CREATE TABLE pairing_prompts (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    request     TEXT NOT NULL,
    identity    TEXT NOT NULL,
    name        TEXT NOT NULL,
    on_channel  TEXT NOT NULL,               -- where the person wrote
    channel     TEXT NOT NULL,
    chat        TEXT NOT NULL,
    thread      TEXT NOT NULL DEFAULT '',
    platform_id TEXT NOT NULL,
    settled     INTEGER NOT NULL DEFAULT 0   -- the message shows what was decided, its buttons are gone
);
CREATE INDEX pairing_prompts_unsettled ON pairing_prompts (request) WHERE settled = 0;

-- What is on record stays as it was.
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit is only ever added to'); END;
CREATE TRIGGER approvals_are_frozen
BEFORE UPDATE OF id, code, call_id, tool, arguments, digest, rule, why, asker, requested_at ON approvals
BEGIN SELECT raise(ABORT, 'what was asked is never changed'); END;
CREATE TRIGGER approvals_are_decided_once
BEFORE UPDATE OF state, decided_by, decided_by_name, decided_at, reason ON approvals WHEN old.state <> 'pending'
BEGIN SELECT raise(ABORT, 'a decision is never changed'); END;
CREATE TRIGGER approvals_are_not_deleted BEFORE DELETE ON approvals
BEGIN SELECT raise(ABORT, 'approvals are on record for good'); END;
